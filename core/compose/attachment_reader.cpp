// One statement reads names and contents; a message that is too large is told by the sizes alone.

#include "compose/attachment_reader.hpp"

#include <fmt/format.h>
#include <string>

#include "base/terminal_text.hpp"
#include "base/wording.hpp"

namespace mailroom::compose {
namespace {

/// The size of all files is known without reading them. $2: the largest that is read.
const std::string attachments_sql = R"(
SELECT name, content_type, content_id, total, CASE WHEN total <= $2 THEN encode(content, 'hex') END
FROM (SELECT *, sum(octet_length(content)) OVER () AS total FROM mailroom_attachments WHERE message = $1) f
ORDER BY place)";

int digit_of(char c) {
  return c <= '9' ? c - '0' : c - 'a' + 10;
}

/// `text` as encode(…, 'hex') writes it.
std::string bytes_of(std::string_view text) {
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (std::size_t i = 0; i + 1 < text.size(); i += 2)
    bytes += static_cast<char>(digit_of(text[i]) * 16 + digit_of(text[i + 1]));
  return bytes;
}

std::variant<std::vector<mail::Attachment>, mail::Refusal> attachments_of(const pqxx::result& rows,
                                                                          std::size_t largest) {
  std::vector<mail::Attachment> files;
  for (const auto& row : rows) {
    if (row[4].is_null())
      return mail::Refusal{fmt::format("its attachments have {} bytes, and a mail at most {} (send.max_size)",
                                       with_thousands(row[3].as<std::int64_t>()),
                                       with_thousands(static_cast<std::int64_t>(largest)))};
    // c_str() of a null is empty.
    files.push_back({.name = row[0].c_str(),
                     .content_type = row[1].c_str(),
                     .content_id = row[2].c_str(),
                     .bytes = bytes_of({row[4].c_str(), row[4].size()})});
  }
  return files;
}

}  // namespace

std::variant<std::vector<mail::Attachment>, mail::Refusal> AttachmentReader::read(std::int64_t message,
                                                                                  std::size_t largest) {
  if (kept_ && kept_->message == message) return kept_->files;
  kept_.reset();
  if (!connection_) connection_ = connect_();
  try {
    const process::StopWatcher::Wait wait(watcher_, process::Awaited::database, connection_.get());
    const auto rows = connection_->run(attachments_sql, message, static_cast<std::int64_t>(largest));
    kept_ = Kept{.message = message, .files = attachments_of(rows, largest)};
  } catch (...) {
    connection_.reset();
    throw;
  }
  return kept_->files;
}

}  // namespace mailroom::compose
