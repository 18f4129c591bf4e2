// RFC 5321. Each command waits for its reply: the service is on the same machine.

#include "sendmail/dialogue.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <utility>

#include "base/text.hpp"

namespace mailroom::sendmail {
namespace {

// RFC 5321, section 4.5.3.2.
constexpr Milliseconds for_command{300'000};
constexpr Milliseconds for_end{600'000};

bool wait_for(int fd, short events, Milliseconds patience) {
  pollfd entry{.fd = fd, .events = events, .revents = 0};
  int ready = 0;
  do {
    ready = poll(&entry, 1, static_cast<int>(patience.count()));
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

bool is_ascii_text(const std::string& text) {
  return std::ranges::all_of(text, [](unsigned char c) { return c < 128; });
}

/// RFC 5321, section 4.5.2.
std::string with_dots(std::string_view text) {
  std::string sent;
  sent.reserve(text.size() + 64);
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && c == '.') sent += '.';
    sent += c;
    begins_line = c == '\n';
  }
  return sent + ".\r\n";
}

}  // namespace

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  std::memcpy(static_cast<char*>(address.sun_path), path.c_str(), path.size() + 1);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  // The system's own form of an address.
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0) return fd;
  const int error = errno;
  ::close(fd);
  errno = error;
  return -1;
}

Dialogue::Dialogue(int fd, std::string host) : fd_(fd), host_(std::move(host)) {}

Dialogue::~Dialogue() {
  if (fd_ >= 0 && has_greeted_) ask("QUIT\r\n", Milliseconds(1000));
  close();
}

Answer Dialogue::submit(const Mail& mail) {
  if (!has_greeted_ && !greet()) return reply_.code() == 0 ? lost("the greeting") : refusal(false);
  const bool needs_utf8 = !is_ascii_text(mail.sender) || !std::ranges::all_of(mail.recipients, is_ascii_text);
  const std::string parameters = needs_utf8 && takes_utf8_ ? " SMTPUTF8" : "";
  if (!ask(fmt::format("MAIL FROM:<{}> SIZE={}{}\r\n", mail.sender, mail.text.size(), parameters),
           for_command))
    return lost("MAIL");
  if (reply_.code() != 250) return refusal(false);
  for (const auto& recipient : mail.recipients) {
    if (!ask(fmt::format("RCPT TO:<{}>\r\n", recipient), for_command)) return lost("RCPT");
    if (reply_.code() == 250 || reply_.code() == 251) continue;
    auto answer = refusal(true);
    answer.words = recipient + ": " + answer.words;
    ask("RSET\r\n", for_command);
    return answer;
  }
  if (!ask("DATA\r\n", for_command)) return lost("DATA");
  if (reply_.code() != 354) return refusal(false);
  if (!ask(with_dots(mail.text), for_end)) return lost("the mail");
  return reply_.code() == 250 ? Answer{Fate::stored, reply_.text()} : refusal(false);
}

bool Dialogue::greet() {
  if (!read_reply(for_command) || reply_.code() != 220) return false;
  if (!ask(fmt::format("EHLO {}\r\n", host_), for_command) || reply_.code() != 250) return false;
  takes_utf8_ = reply_.text().find("SMTPUTF8") != std::string::npos;
  return has_greeted_ = true;
}

bool Dialogue::ask(const std::string& command, Milliseconds patience) {
  return send(command, patience) && read_reply(patience);
}

bool Dialogue::send(std::string_view bytes, Milliseconds patience) {
  while (fd_ >= 0 && !bytes.empty()) {
    if (!wait_for(fd_, POLLOUT, patience)) return false;
    const auto sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    // The service may have said why it takes no more.
    if (sent < 0) return errno == EPIPE || errno == ECONNRESET;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
  return fd_ >= 0;
}

bool Dialogue::read_reply(Milliseconds patience) {
  reply_.clear();
  while (fd_ >= 0) {
    for (auto end = input_.find('\n'); end != std::string::npos; end = input_.find('\n')) {
      const auto line = input_.substr(0, end + 1);
      input_.erase(0, end + 1);
      if (reply_.add(line)) return true;
    }
    std::array<char, 4096> bytes{};
    if (!wait_for(fd_, POLLIN, patience)) break;
    const auto size = recv(fd_, bytes.data(), bytes.size(), 0);
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) break;
    input_.append(bytes.data(), static_cast<std::size_t>(size));
  }
  reply_.clear();
  return false;
}

Answer Dialogue::lost(const std::string& step) {
  close();
  return {Fate::later, "no reply to " + step};
}

Answer Dialogue::refusal(bool of_recipient) {
  // 421: it closes (RFC 5321, section 3.8).
  if (reply_.code() == 421) close();
  const auto words = fmt::format("{} {}", reply_.code(), reply_.text());
  const auto& text = reply_.text();
  // 4.5.3, too many recipients: this mail always has so many.
  if (reply_.code() < 500 && !text.starts_with("4.5.3")) return {Fate::later, words};
  if (text.starts_with("5.7.") || reply_.code() == 530 || reply_.code() == 535)
    return {Fate::no_right, words};
  return {of_recipient ? Fate::no_recipient : Fate::refused, words};
}

void Dialogue::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

}  // namespace mailroom::sendmail
