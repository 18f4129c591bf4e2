// Routes requests. A thread waits for changes of the source, and wakes the pages that wait for one.

#include "preview/preview_server.hpp"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <poll.h>
#include <random>

#include "base/actor.hpp"
#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "crypto/digest.hpp"
#include "crypto/hmac.hpp"
#include "preview/preview_json.hpp"
#include "preview/preview_page.hpp"
#include "process/own_host.hpp"

namespace mailroom::preview {
namespace {

constexpr process::ListenWords preview_words{
    .subject = "the page", .owner = "page", .named_by = "--listen names", .port = "8025"};
constexpr std::chrono::seconds longest_wait{20};  ///< of a page for a change
constexpr std::chrono::seconds preview_patience{30};
constexpr Milliseconds look_again{1000};  ///< where nothing notifies
constexpr std::size_t longest_request = 4 * 1024 * 1024;
constexpr std::size_t most_shown = 64;
constexpr std::size_t most_good = 1024;
constexpr auto html_type = "text/html; charset=utf-8";
constexpr auto json_type = "application/json";

std::string new_secret() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

/// Compares in a time that tells nothing of `secret`.
bool is_secret(std::string_view text, std::string_view secret) {
  return crypto::equal_in_constant_time(crypto::sha256({text}), crypto::sha256({secret}));
}

process::HttpPage with_headers(process::HttpPage page, const std::string& policy) {
  page.headers.insert(page.headers.end(), {{"Content-Security-Policy", policy},
                                           {"Referrer-Policy", "no-referrer"},
                                           {"Cross-Origin-Resource-Policy", "same-origin"}});
  return page;
}

/// Of what is no page.
process::HttpPage plain(process::HttpPage page) {
  return with_headers(std::move(page), "default-src 'none'; frame-ancestors 'none'");
}

process::HttpPage not_found() {
  return plain({.status = 404, .text = "there is nothing here\n"});
}

}  // namespace

config::ListenAddress preview_address(const std::string& text) {
  const auto address = config::parse_listen_address(text);
  if (address && address->path.size() <= config::longest_socket_path) return *address;
  throw Error(ExitCode::usage, fmt::format("--listen '{}' is no address to listen at", shown_text(text)),
              "give an IP address of this host and a port, such as 127.0.0.1:8025");
}

PreviewServer::PreviewServer(const config::ListenAddress& address, PreviewSource& source)
    : source_(source),
      is_open_(!process::is_loopback(address)),
      secret_(is_open_ ? new_secret() : std::string()) {
  const BlockedSignals blocked;
  listener_ =
      std::make_unique<process::HttpListener>(address,
                                              process::HttpListener::Options{.words = preview_words,
                                                                             .methods = "GET, POST",
                                                                             .longest_body = longest_request,
                                                                             .patience = preview_patience},
                                              [this](const process::HttpCall& call) { return answer(call); });
  thread_ = std::thread([this] { watch(); });
}

PreviewServer::~PreviewServer() {
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
  }
  changed_.notify_all();
  ends_.signal();
  thread_.join();
  listener_.reset();
}

std::string PreviewServer::url() const {
  const auto& address = listener_->address();
  if (address.is_unix()) return address.text();
  auto shown = address;
  // What stands for all addresses is none to open.
  if (shown.host == "0.0.0.0" || shown.host == "::") shown.host = host_name();
  return fmt::format("http://{}/{}", shown.text(), secret_.empty() ? "" : secret_ + "/");
}

void PreviewServer::watch() {
  bool has_ended = false;
  while (!has_ended) {
    std::array<pollfd, 2> fds{pollfd{ends_.fd(), POLLIN, 0}, pollfd{source_.fd(), POLLIN, 0}};
    poll(fds.data(), fds.size(), source_.has_work() ? 0 : static_cast<int>(look_again.count()));
    const auto change = source_.poll();
    const std::lock_guard lock(mutex_);
    has_ended = has_ended_;
    if (change == PreviewChange::none) continue;
    ++version_;
    if (change == PreviewChange::list) ++list_version_;
    changed_.notify_all();
  }
}

bool PreviewServer::is_for_us(const process::HttpCall& call) const {
  // A page of another site that had its name point here would send its own.
  const bool names_us = is_open_ || process::names_this_host(call.header("host"));
  const auto site = call.header("sec-fetch-site");
  const bool is_other_site = site == "cross-site" || site == "same-site";
  return names_us && !(is_other_site && call.header("sec-fetch-mode") != "navigate");
}

process::HttpPage PreviewServer::answer(const process::HttpCall& call) noexcept try {
  return checked_answer(call);
} catch (const std::exception& error) {
  return plain({.status = 500, .text = std::string(error.what()) + "\n"});
}

process::HttpPage PreviewServer::checked_answer(const process::HttpCall& call) {
  if (!is_for_us(call))
    return plain({.status = 403, .text = "this page is for localhost and 127.0.0.1 only\n"});
  if (secret_.empty()) return answer_within(call, call.path);
  const auto end = std::min(call.path.find('/', 1), call.path.size());
  const bool knows = call.path.size() > 1 && is_secret(call.path.substr(1, end - 1), secret_);
  if (!knows) return not_found();
  return answer_within(call, call.path.substr(end));
}

process::HttpPage PreviewServer::answer_within(const process::HttpCall& call, const std::string& path) {
  const bool is_post = call.method == "POST";
  if (!is_post && call.method != "GET")
    return plain({.status = 405, .text = "only GET and POST are answered\n"});
  if (path == "/show" && is_post) return show(call);
  if (is_post) return not_found();
  if (path == "/")
    return with_headers({.text = std::string(preview_page()), .type = html_type}, preview_page_policy());
  if (path == "/list") return list();
  if (path == "/change") return wait_for_change(call);
  const auto parts = split(path, '/');
  if (parts.size() < 4 || parts[1] != "mail") return not_found();
  if (parts[3] == "html" && parts.size() == 4) return frame(call, parts[2]);
  if (parts[3] == "source" && parts.size() == 4) return source_of(parts[2]);
  if (parts[3] == "file" && parts.size() == 5) return file_of(parts[2], parts[4]);
  return not_found();
}

process::HttpPage PreviewServer::list() {
  std::uint64_t version = 0;
  {
    const std::lock_guard lock(mutex_);
    version = list_version_;
    if (listed_.version == version) return plain({.text = listed_.text, .type = json_type});
  }
  auto text = list_json(source_, version);
  const std::lock_guard lock(mutex_);
  listed_ = {version, text};
  return plain({.text = std::move(text), .type = json_type});
}

process::HttpPage PreviewServer::wait_for_change(const process::HttpCall& call) {
  const auto seen = [&](std::string_view name) -> std::uint64_t {
    const auto version = call.query.find(name);
    return version == call.query.end() ? 0 : parse_number<std::uint64_t>(version->second).value_or(0);
  };
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, longest_wait,
                    [&] { return has_ended_ || version_ != seen("mails") || list_version_ != seen("list"); });
  return plain(
      {.text = fmt::format(R"({{"version":{},"list":{}}})", version_, list_version_), .type = json_type});
}

std::uint64_t PreviewServer::mails_version() {
  const std::lock_guard lock(mutex_);
  return version_;
}

process::HttpPage PreviewServer::show(const process::HttpCall& call) {
  const auto request = read_request(call.body);
  if (!request || !call.header("content-type").starts_with(json_type))
    return plain({.status = 400, .text = "an object of JSON is wanted\n"});
  const auto version = mails_version();
  const auto result = source_.show(*request);
  const auto place = request->item + '\n' + request->locale;
  const auto shown = result.mail ? keep(place, result.mail) : last_good(place);
  return plain({.text = result_json(*request, result, shown, version), .type = json_type});
}

NumberedMail PreviewServer::keep(const std::string& place, std::shared_ptr<const MailView> mail) {
  const std::lock_guard lock(mutex_);
  // What is the same stays as it is in the page, scrolled as it was.
  const auto before = last_good_.find(place);
  if (before != last_good_.end() && before->second.mail->source == mail->source) return before->second;
  const auto& shown = shown_.emplace_back(NumberedMail{std::to_string(next_id_++), std::move(mail)});
  if (last_good_.size() < most_good || before != last_good_.end()) last_good_[place] = shown;
  auto kept = shown;
  if (shown_.size() > most_shown) shown_.pop_front();
  return kept;
}

std::optional<NumberedMail> PreviewServer::last_good(const std::string& place) {
  const std::lock_guard lock(mutex_);
  const auto good = last_good_.find(place);
  return good == last_good_.end() ? std::nullopt : std::optional<NumberedMail>(good->second);
}

std::shared_ptr<const MailView> PreviewServer::find(std::string_view id) {
  const std::lock_guard lock(mutex_);
  for (const auto& shown : shown_) {
    if (shown.id == id) return shown.mail;
  }
  for (const auto& [place, good] : last_good_) {
    if (good.id == id) return good.mail;
  }
  return nullptr;
}

process::HttpPage PreviewServer::frame(const process::HttpCall& call, std::string_view id) {
  const auto mail = find(id);
  if (!mail) return not_found();
  const bool loads_images = call.query.count("images") > 0;
  const bool follows_links = call.query.count("links") > 0;
  return with_headers({.text = framed_html(*mail, loads_images, follows_links).html, .type = html_type},
                      mail_frame_policy(loads_images, follows_links));
}

process::HttpPage PreviewServer::source_of(std::string_view id) {
  const auto mail = find(id);
  return mail ? plain({.text = mail->source}) : not_found();
}

process::HttpPage PreviewServer::file_of(std::string_view id, std::string_view number) {
  const auto mail = find(id);
  const auto at = parse_number<std::size_t>(number);
  if (!mail || !at || *at >= mail->files.size()) return not_found();
  auto page = plain({.text = mail->files[*at].bytes, .type = "application/octet-stream"});
  page.headers.emplace_back("Content-Disposition", "attachment");
  return page;
}

}  // namespace mailroom::preview
