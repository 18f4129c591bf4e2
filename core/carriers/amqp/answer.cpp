// Tells from code and text whether a line was too large, refused unseen, or may be stored.

#include "carriers/amqp/answer.hpp"

#include "base/text.hpp"

namespace mailroom {
namespace {

// Reply codes of AMQP 0-9-1.
constexpr int access_refused = 403;
constexpr int not_found = 404;
constexpr int precondition_failed = 406;

}  // namespace

std::optional<std::size_t> amqp_size_limit(std::string_view text) {
  constexpr std::string_view before = "max size ";
  const auto at = text.find(before);
  if (at == std::string_view::npos) return std::nullopt;
  const auto number = text.substr(at + before.size());
  return parse_number<std::size_t>(number.substr(0, number.find_first_not_of("0123456789")));
}

Verdict judge_amqp_close(int code, std::string_view text, std::size_t size, bool confirmed_some) {
  if (code == precondition_failed) {
    const auto limit = amqp_size_limit(text);
    if (limit && size > *limit) return Verdict::rejected;
  }
  // Every line goes to the same exchange, so the first on this channel was refused, and none after it was
  // looked at.
  const bool refused_all = (code == access_refused || code == not_found) && !confirmed_some;
  return refused_all ? Verdict::unavailable : Verdict::unknown;
}

}  // namespace mailroom
