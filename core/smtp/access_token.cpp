// Parses what a file or a program gives, and keeps a token until shortly before its end.

#include "smtp/access_token.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/printable.hpp"

namespace mailroom {
namespace {

constexpr std::chrono::seconds early{60};

[[noreturn]] void refuse_token(const std::string& source, std::string_view problem) {
  throw Error(
      ExitCode::configuration, fmt::format("{} {}", source, problem),
      "it must give one line with the access token, or a JSON object with access_token and expires_in");
}

bool is_token(std::string_view text) {
  return !text.empty() && is_printable(text) && text.find_first_of(" \t\"{}") == std::string_view::npos;
}

}  // namespace

AccessToken parse_access_token(std::string_view text, const std::string& source) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  if (text.empty()) refuse_token(source, "gives no token");
  AccessToken token{.text = std::string(text)};
  if (text.front() == '{') {
    const auto object = nlohmann::json::parse(text, nullptr, false);
    if (object.is_discarded() || !object.is_object()) refuse_token(source, "gives JSON that does not parse");
    token.text = object.value("access_token", nlohmann::json()).is_string()
                     ? object["access_token"].get<std::string>()
                     : std::string();
    const auto lives = object.find("expires_in");
    if (lives != object.end() && lives->is_number())
      token.lives = std::chrono::seconds(lives->get<std::int64_t>());
  }
  if (!is_token(token.text)) refuse_token(source, "gives something else than a token");
  return token;
}

std::string TokenSource::token(TimePoint now) {
  const std::lock_guard lock(mutex_);
  const bool has_ended = ends_at_ && now >= *ends_at_;
  if (keeps_ && !kept_.empty() && !has_ended) {
    ++uses_;
    return kept_;
  }
  auto fetched = fetch_();
  kept_ = fetched.text;
  uses_ = 1;
  ends_at_.reset();
  if (fetched.lives) ends_at_ = now + *fetched.lives - early;
  return kept_;
}

bool TokenSource::was_kept(const std::string& token) {
  const std::lock_guard lock(mutex_);
  // Another thread has fetched a new one meanwhile.
  if (token != kept_) return true;
  kept_.clear();
  return keeps_ && uses_ > 1;
}

}  // namespace mailroom
