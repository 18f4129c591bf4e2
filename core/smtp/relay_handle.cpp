#include "smtp/relay_handle.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <new>
#include <utility>

#include "base/error.hpp"
#include "smtp/judgement.hpp"
#include "smtp/reply_text.hpp"

namespace mailroom {
namespace {

TimePoint now() {
  return std::chrono::steady_clock::now();
}

/// Initialises libcurl before its first use. It is not cleaned up: other threads may still use OpenSSL.
CURL* new_handle() {
  static const CURLcode initialised = curl_global_init(CURL_GLOBAL_DEFAULT);
  CURL* const handle = initialised == CURLE_OK ? curl_easy_init() : nullptr;
  if (handle == nullptr) throw Error(ExitCode::failed, "cannot initialise libcurl");
  return handle;
}

/// Credentials never go over a connection without TLS, not even on this host: it may be a tunnel.
bool requires_tls(const RelayUrl& url, const RelayOptions& options) {
  return url.implicit_tls || options.tls_on_loopback || !url.user.empty() || !url.is_loopback();
}

std::string curl_url(const RelayUrl& url, const std::string& hello_name) {
  return fmt::format("{}://{}/{}", url.implicit_tls ? "smtps" : "smtp", url.address(), hello_name);
}

}  // namespace

RelayHandle::~RelayHandle() {
  // libcurl says QUIT, and would wait for the answer for up to two minutes.
  sockets.end_reading();
}

template <typename T>
void RelayHandle::set(CURLoption option, T value) {
  const auto result = curl_easy_setopt(curl_.get(), option, value);
  if (result == CURLE_OK) return;
  throw Error(ExitCode::failed, fmt::format("libcurl refuses option {}: {}", static_cast<int>(option),
                                            curl_easy_strerror(result)));
}

RelayHandle::RelayHandle(RelayUrl relay_url, RelayOptions options)
    : url(std::move(relay_url)),
      options_(std::move(options)),
      secrets_(secrets_of_login(url.user, options_.password)),
      dialogue_({.timeout = options_.timeout,
                 .at_end = std::max(options_.timeout, options_.end_timeout),
                 .wants_auth = !url.user.empty()}),
      curl_(new_handle(), curl_easy_cleanup) {
  set_connection();
  set_security();
  set_callbacks();
}

void RelayHandle::set_connection() {
  set(CURLOPT_PROTOCOLS_STR, "smtp,smtps");
  set(CURLOPT_URL, curl_url(url, options_.hello_name).c_str());
  // Otherwise all_proxy and similar variables of the environment would count.
  set(CURLOPT_PROXY, "");
  set(CURLOPT_UPLOAD, 1L);
  set(CURLOPT_NOSIGNAL, 1L);
  set(CURLOPT_MAXCONNECTS, 1L);
  // Do not wait for the thread that resolves the name when an attempt is interrupted.
  set(CURLOPT_QUICK_EXIT, 1L);
  // The time-outs are those of Dialogue, which on_progress() applies: libcurl has one for all replies, and
  // needs a longer one at the end of the message. Its own is the second line. libcurl calls on_progress()
  // once a second or more often while it waits, also where it blocks (for the reply to the final dot).
  const auto longest = std::max(options_.timeout, options_.end_timeout);
  set(CURLOPT_SERVER_RESPONSE_TIMEOUT,
      static_cast<long>(std::chrono::ceil<std::chrono::seconds>(longest).count() + 5));
  set(CURLOPT_CONNECTTIMEOUT_MS, static_cast<long>(options_.timeout.count()));
}

void RelayHandle::set_security() {
  set(CURLOPT_USE_SSL, static_cast<long>(requires_tls(url, options_) ? CURLUSESSL_ALL : CURLUSESSL_NONE));
  set(CURLOPT_SSL_VERIFYPEER, 1L);
  set(CURLOPT_SSL_VERIFYHOST, 2L);
  set(CURLOPT_SSLVERSION, static_cast<long>(CURL_SSLVERSION_TLSv1_2));
  if (!options_.ca_file.empty()) {
    set(CURLOPT_CAINFO, options_.ca_file.c_str());
    set(CURLOPT_CAPATH, static_cast<const char*>(nullptr));
  }
  if (url.user.empty()) return;
  set(CURLOPT_USERNAME, url.user.c_str());
  set(CURLOPT_PASSWORD, options_.password.c_str());
}

void RelayHandle::set_callbacks() {
  set(CURLOPT_ERRORBUFFER, error_.data());
  set(CURLOPT_READFUNCTION, &RelayHandle::on_read);
  set(CURLOPT_READDATA, static_cast<void*>(this));
  set(CURLOPT_HEADERFUNCTION, &RelayHandle::on_line);
  set(CURLOPT_HEADERDATA, static_cast<void*>(this));
  set(CURLOPT_OPENSOCKETFUNCTION, &RelayHandle::on_open);
  set(CURLOPT_OPENSOCKETDATA, static_cast<void*>(this));
  set(CURLOPT_CLOSESOCKETFUNCTION, &RelayHandle::on_close);
  set(CURLOPT_CLOSESOCKETDATA, static_cast<void*>(this));
  set(CURLOPT_XFERINFOFUNCTION, &RelayHandle::on_progress);
  set(CURLOPT_XFERINFODATA, static_cast<void*>(this));
  set(CURLOPT_NOPROGRESS, 0L);
  // Reports each command as it is sent; nothing is printed.
  set(CURLOPT_DEBUGFUNCTION, &RelayHandle::on_debug);
  set(CURLOPT_DEBUGDATA, static_cast<void*>(this));
  set(CURLOPT_VERBOSE, 1L);
}

std::size_t RelayHandle::on_read(char* to, std::size_t size, std::size_t count, void* self) {
  return static_cast<RelayHandle*>(self)->dialogue_.read(to, size * count, now());
}

std::size_t RelayHandle::on_line(char* line, std::size_t size, std::size_t count, void* self) {
  const bool goes_on = static_cast<RelayHandle*>(self)->dialogue_.received({line, size * count});
  return goes_on ? size * count : 0;
}

int RelayHandle::on_debug(CURL* /*curl*/, curl_infotype kind, char* bytes, std::size_t size, void* self) {
  if (kind == CURLINFO_HEADER_OUT) static_cast<RelayHandle*>(self)->dialogue_.sent({bytes, size}, now());
  return 0;
}

int RelayHandle::on_progress(void* self, curl_off_t /*download_total*/, curl_off_t /*downloaded*/,
                             curl_off_t /*upload_total*/, curl_off_t /*uploaded*/) {
  auto& handle = *static_cast<RelayHandle*>(self);
  return handle.sockets.interrupted() || handle.dialogue_.is_overdue(now()) ? 1 : 0;
}

curl_socket_t RelayHandle::on_open(void* self, curlsocktype /*purpose*/, curl_sockaddr* address) {
  auto& handle = *static_cast<RelayHandle*>(self);
  handle.dialogue_.connecting(now());
  return handle.sockets.open(address->family, address->socktype, address->protocol);
}

int RelayHandle::on_close(void* self, curl_socket_t socket) {
  return static_cast<RelayHandle*>(self)->sockets.close(socket);
}

SmtpExchange RelayHandle::perform(const Mail& mail) {
  dialogue_.begin(mail.message, mail.needs_smtputf8, now());
  error_.front() = '\0';
  set(CURLOPT_MAIL_FROM, fmt::format("<{}>", mail.from).c_str());
  curl_slist* const recipient = curl_slist_append(nullptr, fmt::format("<{}>", mail.to).c_str());
  if (recipient == nullptr) throw std::bad_alloc();
  set(CURLOPT_MAIL_RCPT, recipient);
  result_ = curl_easy_perform(curl_.get());
  set(CURLOPT_MAIL_RCPT, static_cast<curl_slist*>(nullptr));
  curl_slist_free_all(recipient);
  return finished_exchange();
}

/// What is known after `result_`.
SmtpExchange RelayHandle::finished_exchange() const {
  auto exchange = dialogue_.exchange();
  if (exchange.stop == SmtpStop::none && sockets.interrupted()) exchange.stop = SmtpStop::interrupted;
  if (exchange.stop == SmtpStop::none && result_ == CURLE_OPERATION_TIMEDOUT)
    exchange.stop = SmtpStop::timed_out;
  if (exchange.stop == SmtpStop::none && !is_definite(exchange.code)) exchange.stop = SmtpStop::lost;
  return exchange;
}

RelayFault RelayHandle::fault_of(const SmtpExchange& exchange) const {
  if (exchange.stop == SmtpStop::no_auth) return RelayFault::no_auth;
  switch (result_) {
    case CURLE_OK:
      // libcurl accepts some replies to NOOP that are refusals.
      return exchange.code / 100 == 2 ? RelayFault::none : RelayFault::refused;
    case CURLE_USE_SSL_FAILED:
      return RelayFault::no_starttls;
    case CURLE_SSL_CONNECT_ERROR:
      return RelayFault::tls;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
      return RelayFault::certificate;
    case CURLE_LOGIN_DENIED:
      return RelayFault::login;
    default:
      break;
  }
  if (exchange.step == SmtpStep::auth) return RelayFault::login;
  const bool has_answered = exchange.code != 0 || exchange.step != SmtpStep::connect;
  return has_answered ? RelayFault::refused : RelayFault::unreachable;
}

RelayCheck RelayHandle::check() {
  dialogue_.begin({}, false, now());
  error_.front() = '\0';
  set(CURLOPT_NOBODY, 1L);
  set(CURLOPT_CUSTOMREQUEST, "NOOP");
  set(CURLOPT_FRESH_CONNECT, 1L);
  result_ = curl_easy_perform(curl_.get());
  set(CURLOPT_CUSTOMREQUEST, static_cast<const char*>(nullptr));
  set(CURLOPT_UPLOAD, 1L);
  const auto exchange = finished_exchange();
  const auto fault = fault_of(exchange);
  if (fault != RelayFault::none) sockets.shut_down();
  const bool has_reply = fault == RelayFault::none || exchange.code >= 400;
  const auto text =
      fault == RelayFault::none ? dialogue_.reply().text() : text_of(exchange, MailOutcome::unavailable);
  return {.fault = fault,
          .code = has_reply ? exchange.code : 0,
          .reply = recorded_reply(text, secrets_),
          .encrypted = requires_tls(url, options_)};
}

std::string RelayHandle::text_of(const SmtpExchange& exchange, MailOutcome outcome) const {
  const auto& reply = dialogue_.reply();
  if (outcome == MailOutcome::accepted) return reply.last_line();
  const bool is_refusal = exchange.code >= 400 && is_definite(exchange.code);
  if (is_refusal && exchange.stop != SmtpStop::no_auth) return reply.text();
  if (result_ == CURLE_USE_SSL_FAILED) return "the relay does not offer STARTTLS, and TLS is required";
  const bool is_own_stop = exchange.stop != SmtpStop::none && exchange.stop != SmtpStop::lost;
  if (is_own_stop || exchange.step >= SmtpStep::mail || error_.front() == '\0') {
    return missing_reply_text(exchange, dialogue_.limit());
  }
  return error_.data();
}

Delivery RelayHandle::attempt(const Mail& mail, bool on_fresh_connection, bool& again) {
  // What has come while the connection was idle would be taken for the reply to this mail.
  const bool has_gone = sockets.have_input();
  if (has_gone) sockets.shut_down();
  set(CURLOPT_FRESH_CONNECT, on_fresh_connection || has_gone ? 1L : 0L);
  const auto exchange = perform(mail);
  const auto judgement = judge(exchange);
  // After a time-out libcurl keeps the connection, and would take the late reply to this mail for the reply
  // to the next one.
  if (result_ != CURLE_OK || judgement.outcome != MailOutcome::accepted) sockets.shut_down();
  again = judgement.again && !sockets.interrupted();
  const bool has_reply = exchange.code >= 400 || judgement.outcome == MailOutcome::accepted;
  const auto text = text_of(exchange, judgement.outcome);
  Delivery delivery{.outcome = judgement.outcome,
                    .counts = judgement.counts,
                    .code = has_reply ? exchange.code : 0,
                    .reply = recorded_reply(text, secrets_),
                    .relay = url.address(),
                    .retry_after = std::nullopt,
                    .throttled = false};
  if (has_reply && delivery.outcome != MailOutcome::accepted) {
    delivery.retry_after = named_delay(text);
    // At STARTTLS and AUTH 454 means something else.
    const bool is_about_mail = exchange.step >= SmtpStep::mail || exchange.code != 454;
    delivery.throttled = is_about_mail && is_throttled(exchange.code, text, options_.throttled_by);
  }
  return delivery;
}

}  // namespace mailroom
