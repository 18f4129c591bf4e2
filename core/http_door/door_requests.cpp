// The way of a request through the door: whose it is, what it asks for, and who answers it.

#include <array>
#include <fmt/format.h>
#include <openssl/rand.h>
#include <utility>

#include "api_keys/api_key.hpp"
#include "base/encoded_text.hpp"
#include "base/error.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "crypto/base64.hpp"
#include "http_door/file_fetch.hpp"
#include "http_door/http_door.hpp"
#include "http_door/operations.hpp"

namespace mailroom::http_door {
namespace {

/// As many again as are fetched at once may wait, each for 10 s.
constexpr std::size_t most_fetching = 8;

/// New for each request without a key. Those of one time lie together in the index.
std::string own_key() {
  std::array<std::uint8_t, 16> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1)
    throw Error(ExitCode::failed, "no random bytes");
  const auto seconds =
      std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()).time_since_epoch().count();
  return fmt::format("http:{:08x}:{}", seconds, hex_text(bytes));
}

/// What is behind `Bearer`, without blanks; nullopt for another scheme.
std::optional<std::string_view> bearer_of(std::string_view header) {
  constexpr std::string_view scheme = "bearer ";
  if (lower_case(header.substr(0, scheme.size())) != scheme) return std::nullopt;
  return trimmed(header.substr(scheme.size()));
}

}  // namespace

/// Before the body comes.
void HttpDoor::look_at_key(HttpConnection& connection) {
  auto& reader = connection.reader();
  const bool has_body = reader.has_body();
  const auto& request = reader.request();
  const auto refuse_head = [&](const Fault& fault) {
    if (!has_body) {
      reader.go_on(false);
      reader.take_request();
    }
    refuse(connection, fault, has_body);
  };
  if (is_stopping_) return refuse_head({Problem::unavailable, ""});
  if (service_.closed())
    return refuse_head({Problem::unavailable,
                        "This database is a copy or a standby, and takes no mail: nothing was stored"});
  const auto header = request.header("authorization");
  if (!header) return refuse_head({Problem::no_key, ""});
  const auto key = bearer_of(*header);
  if (!key || !api_keys::has_form(*key, shape_.key_prefix())) return refuse_head({Problem::bad_key, ""});
  const auto digest = hex_text(api_keys::digest_of(*key));
  const auto known = known_.find(digest);
  if (known != known_.end() && known->second.until > steady_now())
    return let_in(connection, known->second.credentials);
  const auto waits = begin_wait(connection);
  const bool is_asked =
      lookups_->ask([this, waits, digest, id = api_keys::id_of(*key)](KeyedSession& session) {
        auto found = session.find(digest);
        Verdict verdict{.request = waits, .is_about_key = true};
        if (std::holds_alternative<Away>(found)) {
          verdict.what = Fault{Problem::unavailable, ""};
        } else if (auto& credentials = std::get<std::optional<Credentials>>(found)) {
          credentials->id = id;
          verdict.credentials = std::move(credentials);
          verdict.has_rate = true;
          verdict.rate = session.rate();
        } else {
          verdict.what = Fault{Problem::bad_key, ""};
        }
        tell(std::move(verdict));
      });
  if (is_asked) return;
  waiting_.erase(waits);
  refuse_head({Problem::unavailable, ""});
}

void HttpDoor::let_in(HttpConnection& connection, const Credentials& credentials) {
  connection.credentials() = credentials;
  const auto& request = connection.reader().request();
  const bool has_body = connection.reader().has_body();
  std::optional<Fault> fault;
  if (credentials.may_only_send && !shape_.is_sending(request.method, request.path)) {
    fault = Fault{Problem::sending_key, ""};
  } else if (const auto encoding = request.header("content-encoding");
             encoding && lower_case(*encoding) != "identity") {
    fault = Fault{Problem::encoded, ""};
  }
  if (!fault) return connection.go_on_with_body();
  if (!has_body) connection.reader().take_request();
  refuse(connection, *fault, has_body);
}

void HttpDoor::carry_out(HttpConnection& connection) {
  const auto credentials = *connection.credentials();
  const auto& request = connection.reader().request();
  const auto terms = service_.terms_of(credentials.role);
  const auto key = request.header("idempotency-key");
  auto read = key && !is_utf8(*key) ? std::variant<Operation, Fault>(Fault{
                                          Problem::bad_idempotency_key, "The idempotency key is not UTF-8."})
                                    : shape_.read(request,
                                                  {.senders = terms.senders,
                                                   .header_options = terms.header_options,
                                                   .may_only_send = credentials.may_only_send},
                                                  defaults());
  if (const auto* fault = std::get_if<Fault>(&read)) {
    refuse(connection, *fault);
    connection.reader().take_request();
    return;
  }
  connection.reader().take_request();
  auto& operation = std::get<Operation>(read);
  if (auto* wanted = std::get_if<Post>(&operation)) return post(connection, credentials, std::move(*wanted));
  const auto waits = begin_wait(connection);
  const bool is_asked =
      questions_->ask([this, waits, credentials, operation, defaults = defaults()](KeyedSession& session) {
        tell({.request = waits, .what = answer_to(operation, credentials, shape_, defaults, session)});
      });
  if (is_asked) return;
  waiting_.erase(waits);
  refuse(connection, {Problem::unavailable, ""});
}

void HttpDoor::post(HttpConnection& connection, const Credentials& credentials, Post wanted) {
  if (wanted.mails.empty()) return answer(connection, shape_.posted(wanted, {}), "", false);
  if (!wanted.files.empty()) return fetch(connection, std::move(wanted));
  const auto waits = begin_wait(connection);
  writer_of(credentials.role).add(make_work(waits, credentials, std::move(wanted), own_key()));
}

/// The files of a request come before its transaction begins.
void HttpDoor::fetch(HttpConnection& connection, Post wanted) {
  if (fetching_ >= most_fetching)
    return refuse(connection,
                  {Problem::unavailable, "Too many files are fetched just now: nothing was stored"});
  const auto waits = begin_wait(connection);
  ++fetching_;
  const bool is_asked = fetches_->ask([this, waits, post = std::move(wanted)](KeyedSession& /*none*/) {
    Verdict verdict{.request = waits, .is_about_files = true};
    const auto fetched = fetch_files(post.files, {}, usual_routes());
    if (const auto* problem = std::get_if<FetchProblem>(&fetched)) {
      log_.warn("cannot fetch a file", {{"host", post.files.front().host}, {"reason", problem->reason}});
      verdict.what = Fault{Problem::bad_attachment, fmt::format("`attachments[{}]` has a `path` that {}",
                                                                problem->place, problem->words)};
    } else {
      verdict.fetched = std::make_shared<Post>(post);
      const auto& bodies = std::get<std::vector<std::string>>(fetched);
      for (std::size_t i = 0; i < bodies.size(); ++i)
        verdict.fetched->mails.front()["attachments"][post.files[i].place]["content"] =
            crypto::base64(std::vector<std::uint8_t>(bodies[i].begin(), bodies[i].end()));
      verdict.fetched->files.clear();
    }
    tell(std::move(verdict));
  });
  if (is_asked) return;
  --fetching_;
  waiting_.erase(waits);
  refuse(connection, {Problem::unavailable, ""});
}

void HttpDoor::store_fetched(HttpConnection& connection, Post fetched) {
  std::size_t size = 0;
  for (const auto& file : fetched.mails.front()["attachments"])
    size += file["content"].get_ref<const std::string&>().size();
  if (!connection.hold_more(size)) return refuse(connection, {Problem::unavailable, ""});
  post(connection, *connection.credentials(), std::move(fetched));
}

}  // namespace mailroom::http_door
