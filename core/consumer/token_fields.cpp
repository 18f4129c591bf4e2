// Trusts the digits that the server writes, and checks only how long a secret is.

#include "consumer/token_fields.hpp"

#include <charconv>

namespace mailroom {
namespace {

int hex_digit(char c) {
  return c <= '9' ? c - '0' : c - 'a' + 10;
}

}  // namespace

std::optional<Secret> read_secret(std::string_view text) {
  if (text.size() != 2 + 2 * secret_size) return std::nullopt;
  Secret secret{};
  for (std::size_t i = 0; i < secret.size(); ++i) {
    secret[i] = static_cast<std::uint8_t>(hex_digit(text[2 + 2 * i]) * 16 + hex_digit(text[3 + 2 * i]));
  }
  return secret;
}

std::int64_t read_number(std::string_view text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

Action read_action(std::string_view text) {
  return text == action_name(Action::activation) ? Action::activation : Action::password_recovery;
}

}  // namespace mailroom
