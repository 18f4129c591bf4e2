// The relays that send.relay names, and what keeps a mail from being read as commands. The SMTP is
// RelayHandle's.

#include "carriers/smtp/relay.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <unistd.h>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "carriers/smtp/configured_relays.hpp"
#include "carriers/smtp/relay_handle.hpp"

namespace mailroom {
namespace {

/// What becomes of a mail that never reached the relay's connection.
Answer refused(const RelayUrl& url, Verdict verdict, std::string why) {
  return {.verdict = verdict,
          .sink = url.name(),
          .reply = std::move(why),
          .is_excused = verdict != Verdict::rejected};
}

const UrlForm relay_form{.subject = "the relay",
                         .schemes = {{"smtp", 25}, {"smtps", 465}},
                         .password_key = "send.password_file",
                         .hint = "write it as smtp://host, smtp://user@host:587 or smtps://user@host",
                         .has_path = false};

RelayUrl parse_relay_url(std::string_view text) {
  const auto url = parse_server_url(text, relay_form);
  const RelayUrl relay{url.servers.front(), url.scheme == "smtps", url.user};
  if (relay.implicit_tls || relay.port != 465) return relay;
  throw Error(ExitCode::configuration,
              fmt::format("the relay 'smtp://{}{}' has port 465, which speaks TLS from the first byte",
                          relay.user.empty() ? "" : "***@", relay.address()),
              "write it with smtps:// in place of smtp://");
}

constexpr std::size_t longest_address = 254;

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

/// True if every CR of `message` is followed by LF, and every LF preceded by CR.
bool has_crlf_only(std::string_view message) {
  while (true) {
    const auto line_end = message.find('\n');
    const auto cr = message.substr(0, line_end).find('\r');
    if (line_end == std::string_view::npos) return cr == std::string_view::npos;
    if (cr == std::string_view::npos || cr + 1 != line_end) return false;
    message.remove_prefix(line_end + 1);
  }
}

/// True for a local part without what could end it or the command; also for a quoted one with blanks, and
/// with quotes and backslashes that are themselves quoted.
bool is_safe_local(std::string_view local) {
  if (local.find_first_of("<>") != std::string_view::npos) return false;
  if (!local.starts_with('"')) return local.find_first_of(" \"\\@") == std::string_view::npos;
  if (local.size() < 3 || !local.ends_with('"')) return false;
  const auto text = local.substr(1, local.size() - 2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '"' || (text[i] == '\\' && ++i == text.size())) return false;
  }
  return true;
}

}  // namespace

void check_relay(const RelayUrl& url, const RelayOptions& options) {
  if (!url.user.empty() && options.password.empty() && !options.tokens) {
    throw Error(ExitCode::configuration,
                fmt::format("the relay {} has a user, and there is no password", url.name()),
                "name the file that contains it in send.password_file, or remove the user from the URL");
  }
  if (!options.hello_name.empty()) check_hello_name(options.hello_name);
  if (!options.ca_file.empty() && !std::ifstream(options.ca_file).good()) {
    throw Error(ExitCode::configuration, fmt::format("cannot read the CA file {}", options.ca_file),
                "it is set by send.ca_file, and this user must be able to read it");
  }
}

Relay::Relay(RelayUrl url, RelayOptions options) {
  check_relay(url, options);
  if (options.hello_name.empty()) options.hello_name = own_hello_name();
  handle_ = std::make_unique<RelayHandle>(std::move(url), std::move(options));
}

Relay::~Relay() = default;

Answer Relay::deliver(const Message& mail) {
  const auto& envelope = mail.envelope;
  if (!envelope.from.empty() && !is_envelope_address(envelope.from, envelope.needs_smtputf8)) {
    return refused(url(), Verdict::unavailable, "the sender's address cannot be written into a command");
  }
  if (!is_envelope_address(envelope.to, envelope.needs_smtputf8)) {
    return refused(url(), Verdict::rejected, "the address cannot be written into a command");
  }
  if (!is_transmittable(mail.body)) {
    return refused(url(), Verdict::rejected, "the message has a NUL, or a line end other than CRLF");
  }
  if (handle_->sockets.interrupted()) {
    return refused(url(), Verdict::deferred, "stopped before the mail was sent");
  }
  bool again = false;
  auto delivery = handle_->attempt(mail, false, again);
  if (again) delivery = handle_->attempt(mail, true, again);
  const auto is_turned_away = [&] {
    return delivery.verdict == Verdict::unavailable && delivery.code == 421 && !delivery.before_message;
  };
  while (is_turned_away() && handle_->open_elsewhere())
    delivery = handle_->attempt(mail, false, again);
  return delivery;
}

RelayCheck Relay::check(const Envelope* sample) {
  return handle_->check(sample);
}

void Relay::rest() {
  handle_->rest();
}

const RelayUrl& Relay::url() const {
  return handle_->url;
}

void Relay::interrupt() {
  handle_->sockets.interrupt();
}

void Relay::resume() {
  handle_->sockets.resume();
}

std::vector<RelayUrl> parse_relay_urls(std::string_view text) {
  std::vector<RelayUrl> relays;
  for (const auto part : split(text, ',')) {
    const auto url = trimmed(part);
    if (url.empty()) throw Error(ExitCode::configuration, "a relay is missing", relay_form.hint);
    relays.push_back(parse_relay_url(url));
  }
  return relays;
}

bool is_envelope_address(std::string_view address, bool allow_utf8) {
  const auto at = address.rfind('@');
  if (at == 0 || at == std::string_view::npos || at + 1 == address.size()) return false;
  const auto domain = address.substr(at + 1);
  if (address.size() > longest_address || !is_safe_local(address.substr(0, at))) return false;
  if (!is_ascii(allow_utf8 ? domain : address)) return false;
  return is_printable(address) && domain.find_first_of(" <>\"\\") == std::string_view::npos;
}

bool is_transmittable(std::string_view message) {
  return message.find('\0') == std::string_view::npos && has_crlf_only(message);
}

int RelaySockets::open(int family, int type, int protocol) {
  const std::lock_guard lock(mutex_);
  if (interrupted_) return -1;
  const int opened = ::socket(family, type | SOCK_CLOEXEC, protocol);
  if (opened >= 0) open_.push_back(opened);
  return opened;
}

int RelaySockets::close(int socket) {
  const std::lock_guard lock(mutex_);
  open_.erase(std::remove(open_.begin(), open_.end(), socket), open_.end());
  return ::close(socket);
}

void RelaySockets::say(int socket, std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

void RelaySockets::shut_down_all(int how) {
  for (const int each : open_)
    ::shutdown(each, how);
}

void RelaySockets::shut_down() {
  const std::lock_guard lock(mutex_);
  shut_down_all(SHUT_RDWR);
}

void RelaySockets::end_reading() {
  const std::lock_guard lock(mutex_);
  shut_down_all(SHUT_RD);
}

void RelaySockets::interrupt() {
  // Under the lock of open(), so that a socket is either refused or shut down.
  const std::lock_guard lock(mutex_);
  interrupted_ = true;
  shut_down_all(SHUT_RDWR);
}

}  // namespace mailroom
