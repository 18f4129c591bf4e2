// A line of a mailbox server gives no id that is none, and no text or folder breaks out of its quotes.

#include "fuzz/fuzz.hpp"
#include "mailbox/imap_syntax.hpp"

namespace mailroom::fuzz::fuzz_imap {
namespace {

int run(const std::uint8_t* data, std::size_t size) {
  const auto line = text_of(data, size);
  for (const auto id : mailbox::searched_ids(line))
    require(id > 0 && line.find(std::to_string(id)) != std::string_view::npos, "an id is in the line");
  if (const auto uid = mailbox::fetched_uid(line))
    require(*uid > 0 && line.starts_with("* "), "a UID is of an untagged line");
  if (const auto text = mailbox::fetched_text(line))
    require(text->size() < line.size(), "a text is a part of its line");
  if (mailbox::literal_size(line)) require(line.ends_with('}'), "a literal follows the line");
  if (const auto end = mailbox::tagged_end(line, "m1"))
    require(line.ends_with(end->words), "what is said is the end of the line");
  if (const auto quoted = mailbox::quoted_folder(line)) {
    require(quoted->find_first_of("\r\n") == std::string::npos, "a folder stays on its line");
    bool is_escaped = false;
    for (std::size_t i = 1; i + 1 < quoted->size(); ++i) {
      require(is_escaped || (*quoted)[i] != '"', "a folder does not end early");
      is_escaped = !is_escaped && (*quoted)[i] == '\\';
    }
    require(!is_escaped, "a folder ends");
  }
  return 0;
}

const Target target("imap", run);

}  // namespace
}  // namespace mailroom::fuzz::fuzz_imap
