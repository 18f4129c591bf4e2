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
SELECT name, content_type, content_id, total, CASE WHEN total <= $2 THEN encode(content, 'hex') END AS content
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

std::variant<std::vector<mail::Attachment>, mail::Refusal> attachments_of(const db::Rows& rows,
                                                                          std::size_t largest) {
  std::vector<mail::Attachment> files;
  for (const auto& row : rows) {
    if (row.is_null("content"))
      return mail::Refusal{fmt::format("its attachments have {} bytes, and a mail at most {} (send.max_size)",
                                       with_thousands(row.number("total")),
                                       with_thousands(static_cast<std::int64_t>(largest)))};
    files.push_back({.name = row.text("name"),
                     .content_type = row.text("content_type"),
                     .content_id = row.text("content_id"),
                     .bytes = bytes_of(row.view("content"))});
  }
  return files;
}

}  // namespace

std::variant<std::vector<mail::Attachment>, mail::Refusal> read_attachments(db::Connection& connection,
                                                                            std::int64_t message,
                                                                            std::size_t largest) {
  return attachments_of(connection.run(attachments_sql, message, static_cast<std::int64_t>(largest)),
                        largest);
}

std::variant<std::vector<mail::Attachment>, mail::Refusal> AttachmentReader::read(std::int64_t message,
                                                                                  std::size_t largest) {
  if (kept_ && kept_->message == message) return kept_->files;
  kept_.reset();
  if (!connection_) connection_ = connect_();
  try {
    const process::StopWatcher::Wait wait(watcher_, process::Awaited::database, connection_.get());
    kept_ = Kept{.message = message, .files = read_attachments(*connection_, message, largest)};
  } catch (...) {
    connection_.reset();
    throw;
  }
  return kept_->files;
}

}  // namespace mailroom::compose
