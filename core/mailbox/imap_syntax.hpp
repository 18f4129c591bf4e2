// What IMAP (RFC 9051) says, in both directions (pure).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::mailbox {

/// The name of a folder as a quoted string; nullopt for one that is not printable ASCII, which IMAP encodes
/// in a way of its own.
std::optional<std::string> quoted_folder(std::string_view name);

/// The size of the literal that follows a line: 310 of `* 12 FETCH (BODY[] {310}`.
std::optional<std::uint64_t> literal_size(std::string_view line);

/// The ids of `* SEARCH 2 84 882`; none for another line.
std::vector<std::uint32_t> searched_ids(std::string_view line);

/// The UID of `* 12 FETCH (UID 84 …)`; nullopt for another line.
std::optional<std::uint32_t> fetched_uid(std::string_view line);

/// The text of `* 12 FETCH (UID 84 BODY[]<0> "…")`, where it is no literal.
std::optional<std::string> fetched_text(std::string_view line);

/// What follows the tag of the answer to a command, its end; nullopt for another line.
struct ImapEnd {
  bool is_ok = false;
  std::string_view words{};  ///< from OK, NO or BAD on
};
std::optional<ImapEnd> tagged_end(std::string_view line, std::string_view tag);

/// True if the words of a line, separated by blanks, hold `word`, in any case: of CAPABILITY.
bool has_word(std::string_view line, std::string_view word);

/// `2,84,882`
std::string uid_set(const std::vector<std::string>& uids);

}  // namespace mailroom::mailbox
