// Cookies, tokens and origins. Every change is a form that carries the token of its session, from a page of
// this site.

#include "desk/desk_door.hpp"

#include <cstring>
#include <fmt/format.h>
#include <thread>
#include <utility>

#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "base/threads.hpp"
#include "crypto/digest.hpp"
#include "crypto/hmac.hpp"
#include "desk/own_site.hpp"
#include "process/http_form.hpp"
#include "process/own_host.hpp"

namespace mailroom::desk {
namespace {

constexpr process::ListenWords desk_words{
    .subject = "the desk", .owner = "desk", .named_by = "desk.listen and --listen name", .port = "8026"};
constexpr std::chrono::seconds desk_patience{30};
constexpr std::size_t longest_form = 64 * 1024;
constexpr int most_sign_ins = 8;  ///< at once

DeskFields fields_of(std::string_view form) {
  DeskFields fields;
  for (auto& [name, value] : process::form_fields(form))
    fields.emplace(std::move(name), std::move(value));
  return fields;
}

std::string take(DeskFields& fields, std::string_view name) {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : std::exchange(found->second, {});
}

bool is_same(std::string_view text, std::string_view secret) {
  return crypto::equal_in_constant_time(crypto::sha256({text}), crypto::sha256({secret}));
}

/// A path of the desk, which leads nowhere else.
std::string own_path(const std::string& text) {
  const bool is_path = text.starts_with('/') && !text.starts_with("//") &&
                       text.find_first_of("\\\r\n") == std::string::npos && printable(text) == text;
  return is_path ? text : "/";
}

}  // namespace

std::string DeskCall::field(std::string_view name) const {
  const auto found = fields.find(name);
  return found == fields.end() ? std::string() : std::string(trimmed(found->second));
}

DeskDoor::DeskDoor(DeskOptions options, DeskPages pages, Log& log)
    : options_(std::move(options)), pages_(std::move(pages)), log_(log), sessions_(options_.limits) {
  const auto site = parse_site(options_.url);
  host_ = site.host;
  is_secure_ = site.is_secure;
  if (!is_secure_ && !process::is_loopback(options_.listen))
    throw Error(
        ExitCode::configuration,
        fmt::format(
            "desk.listen is {}, which other hosts can reach, and passwords would cross the network as they are",
            options_.listen.text()),
        "listen at 127.0.0.1:8026, or set desk.url to the https:// URL of a proxy in front of it");
  const BlockedSignals blocked;
  listener_ =
      std::make_unique<process::HttpListener>(options_.listen,
                                              process::HttpListener::Options{.words = desk_words,
                                                                             .methods = "GET, POST",
                                                                             .longest_body = longest_form,
                                                                             .patience = desk_patience},
                                              [this](const process::HttpCall& call) { return answer(call); });
}

DeskDoor::~DeskDoor() {
  listener_.reset();
}

std::string DeskDoor::url() const {
  if (!options_.url.empty()) return options_.url;
  const auto& address = listener_->address();
  return address.is_unix() ? address.text() : fmt::format("http://{}/", address.text());
}

std::string_view DeskDoor::secret_of(const process::HttpCall& call) const {
  const std::string_view name = is_secure_ ? "__Host-mailroom_desk" : "mailroom_desk";
  for (const auto part : split(call.header("cookie"), ';')) {
    const auto pair = trimmed(part);
    if (pair.starts_with(name) && pair.substr(name.size()).starts_with('='))
      return pair.substr(name.size() + 1);
  }
  return {};
}

std::string DeskDoor::cookie(std::string_view secret) const {
  return fmt::format("{}={}; Path=/; HttpOnly; SameSite=Strict{}{}",
                     is_secure_ ? "__Host-mailroom_desk" : "mailroom_desk", secret,
                     is_secure_ ? "; Secure" : "", secret.empty() ? "; Max-Age=0" : "");
}

bool DeskDoor::is_own_host(std::string_view host) const {
  return process::names_this_host(host) || (!host_.empty() && host == host_);
}

bool DeskDoor::is_own_site(const process::HttpCall& call) const {
  const auto origin = call.header("origin");
  const auto site = call.header("sec-fetch-site");
  if (!site.empty() && site != "same-origin") return false;
  // A page that tells nobody where a request is from says null.
  if (origin.empty() || origin == "null") return site == "same-origin";
  const auto own = options_.url.empty() ? fmt::format("http://{}", call.header("host"))
                                        : fmt::format("http{}://{}", is_secure_ ? "s" : "", host_);
  return origin == own;
}

DeskDoor::Answer DeskDoor::written(const DeskPage& page, const DeskReader& reader) const {
  Answer answer{.status = page.status, .text = {}, .type = "text/html; charset=utf-8"};
  answer.headers = {{"Content-Security-Policy", page.policy.empty() ? desk_policy() : page.policy},
                    {"Referrer-Policy", "no-referrer"},
                    {"Cross-Origin-Opener-Policy", "same-origin"},
                    {"Cross-Origin-Resource-Policy", "same-origin"},
                    {"X-Frame-Options", page.policy.empty() ? "DENY" : "SAMEORIGIN"},
                    {"X-Robots-Tag", "noindex, nofollow"}};
  if (!page.location.empty()) {
    answer.status = 303;
    answer.headers.emplace_back("Location", page.location);
  } else if (!page.file.empty()) {
    answer.type = "application/json; charset=utf-8";
    answer.headers.emplace_back("Content-Disposition", fmt::format("attachment; filename=\"{}\"", page.file));
    answer.text = page.body;
  } else {
    answer.text = page.policy.empty() ? desk_document(page, reader) : page.body;
  }
  return answer;
}

DeskDoor::Answer DeskDoor::refusal(int status, const std::string& title, const std::string& text) const {
  return written({.status = status, .title = title, .body = fmt::format("<p>{}</p>", html_text(text))}, {});
}

std::shared_ptr<DeskSession> DeskDoor::session_of(const process::HttpCall& call) {
  return sessions_.find(secret_of(call), steady_now());
}

DeskDoor::Answer DeskDoor::answer(const process::HttpCall& call) noexcept try {
  return checked_answer(call);
} catch (const std::exception& error) {
  // Whoever asks may not have signed in: the words are the log's.
  log_.error("a request failed", {{"path", shown_text(call.path)}, {"error", error.what()}});
  return {.status = 500, .text = "The desk could not answer; its log says why.\n"};
}

DeskDoor::Answer DeskDoor::checked_answer(const process::HttpCall& call) {
  // A page of another site that had its name point here would send its own.
  if (!is_own_host(call.header("host")))
    return refusal(421, "Not this host", "This desk does not serve the host that was asked for.");
  if (call.method == "POST") return answer_form(call);
  if (call.method != "GET") return refusal(405, "Not answered", "Only GET and POST are answered.");
  const auto session = session_of(call);
  if (!session) {
    if (call.path != "/sign-in") return written({.location = "/sign-in"}, {});
    return written(sign_in_page({}, {}, "/"), {});
  }
  DeskCall own{.session = *session, .path = call.path};
  for (const auto& [name, value] : call.query)
    own.fields.emplace(name, value);
  return serve(session, own);
}

DeskDoor::Answer DeskDoor::answer_form(const process::HttpCall& call) {
  if (!is_own_site(call))
    return refusal(403, "Refused", "The form was not sent by a page of this desk. Nothing was changed.");
  auto fields = fields_of(call.body);
  if (call.path == "/sign-in") return answer_sign_in(call, fields);
  const auto session = session_of(call);
  if (!session)
    return written(sign_in_page("The session has ended, and nothing was changed. Sign in again.", {}, "/"),
                   {});
  if (!is_same(take(fields, "csrf"), session->csrf))
    return refusal(403, "Refused", "The form is not of this session. Nothing was changed.");
  if (call.path == "/sign-out") {
    sessions_.end(secret_of(call));
    log_.info("signed out", {{"role", session->role}});
    auto answer = written({.location = "/sign-in"}, {});
    answer.headers.emplace_back("Set-Cookie", cookie({}));
    return answer;
  }
  DeskCall own{.session = *session, .path = call.path, .fields = std::move(fields), .changes = true};
  return serve(session, own);
}

DeskDoor::Answer DeskDoor::answer_sign_in(const process::HttpCall& call, DeskFields& fields) {
  const auto client = process::client_of(call);
  const auto role = take(fields, "role");
  const auto next = own_path(take(fields, "next"));
  {
    const std::lock_guard lock(mutex_);
    if (guesses_.are_too_many(client, steady_now()) || signing_in_ >= most_sign_ins) {
      auto page = sign_in_page("There were too many sign-ins. Try again in a minute.", role, next);
      page.status = 429;
      return written(page, {});
    }
    ++signing_in_;
  }
  auto password = take(fields, "password");
  auto result = sign_in(options_.target, role, password);
  explicit_bzero(password.data(), password.size());
  Milliseconds wait{0};
  {
    const std::lock_guard lock(mutex_);
    if (result.was_guess) wait = guesses_.add(client, steady_now());
  }
  std::this_thread::sleep_for(wait);
  {
    const std::lock_guard lock(mutex_);
    --signing_in_;
  }
  std::string secret;
  if (result.session) {
    secret = sessions_.open(result.session, steady_now());
    if (secret.empty()) result.problem = "Too many people have signed in. Try again later.";
  }
  if (secret.empty()) {
    log_.warn("refused a sign-in", {{"role", shown_text(role)}, {"client", client}});
    return written(sign_in_page(result.problem, role, next), {});
  }
  log_.info("signed in", {{"role", role}, {"client", client}});
  auto answer = written({.location = next}, {});
  answer.headers.emplace_back("Set-Cookie", cookie(secret));
  return answer;
}

DeskPage DeskDoor::made(DeskCall& call) {
  try {
    return pages_(call);
  } catch (const db::ConnectionLost&) {
    throw;
  } catch (const Error& error) {
    const auto* const refused = dynamic_cast<const db::DatabaseError*>(&error);
    const bool lacks_right =
        refused != nullptr && refused->sqlstate() == db::sqlstate::insufficient_privilege;
    return {.status = lacks_right                          ? 403
                      : error.code() == ExitCode::unusable ? 404
                                                           : 400,
            .title = lacks_right ? "Not allowed" : "That is not possible",
            .body = fmt::format(
                "<p class=\"bad\" role=\"alert\">{}</p>{}{}", html_text(error.what()),
                error.hint().empty() ? std::string() : fmt::format("<p>{}</p>", html_text(error.hint())),
                "<p><a href=\"/\">Search again</a></p>")};
  }
}

DeskDoor::Answer DeskDoor::serve(const std::shared_ptr<DeskSession>& session, DeskCall& call) {
  const std::lock_guard lock(session->mutex);
  const DeskReader reader{.role = session->role, .csrf = session->csrf};
  try {
    return written(made(call), reader);
  } catch (const db::ConnectionLost&) {
    // Without its password nothing can open another one.
    sessions_.end_session(*session);
    return written(sign_in_page("The database has ended the session. Sign in again.", session->role, "/"),
                   {});
  }
}

}  // namespace mailroom::desk
