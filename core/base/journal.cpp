// Recognises the journal by JOURNAL_STREAM, and sends each entry without what may be a secret.

#include "base/journal.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <sys/stat.h>
#ifdef MAILROOM_SYSTEMD
#define SD_JOURNAL_SUPPRESS_LOCATION
#include <systemd/sd-journal.h>
#endif

#include "base/text.hpp"

namespace mailroom {
namespace {

/// As syslog(3) numbers them.
int priority_of(LogLevel level) {
  constexpr std::array priorities{7, 6, 4, 3};
  return priorities.at(static_cast<std::size_t>(level) - static_cast<std::size_t>(LogLevel::debug));
}

std::string field_name(std::string_view key) {
  std::string name = "MAILROOM_";
  for (const char c : key) {
    const bool is_lower = c >= 'a' && c <= 'z';
    const bool is_digit = c >= '0' && c <= '9';
    name += is_lower ? static_cast<char>(c - 'a' + 'A') : is_digit ? c : '_';
  }
  return name;
}

}  // namespace

#ifdef MAILROOM_SYSTEMD
const bool has_journal = true;
#else
const bool has_journal = false;
#endif

bool is_journal(int fd) {
  // systemd sets it to device and inode of the stream, which a shell may have redirected since.
  const char* stream = std::getenv("JOURNAL_STREAM");
  struct stat file {};
  return stream != nullptr && fstat(fd, &file) == 0 &&
         fmt::format("{}:{}", file.st_dev, file.st_ino) == stream;
}

bool stderr_is_journal() {
  return has_journal && is_journal(2);
}

JournalEntry::JournalEntry(LogLevel level, std::string_view message)
    : fields_{fmt::format("PRIORITY={}", priority_of(level)),
              "MESSAGE=" + without_secrets(std::string(message))} {}

void JournalEntry::add(std::string_view key, std::string_view value) {
  fields_.push_back(field_name(key) + "=" + without_secrets(std::string(value)));
}

bool JournalEntry::send() const {
#ifdef MAILROOM_SYSTEMD
  std::vector<iovec> parts;
  for (const auto& field : fields_)
    parts.push_back({.iov_base = const_cast<char*>(field.data()), .iov_len = field.size()});
  return sd_journal_sendv(parts.data(), static_cast<int>(parts.size())) >= 0;
#else
  return false;
#endif
}

}  // namespace mailroom
