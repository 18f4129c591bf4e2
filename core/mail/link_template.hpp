// The link that the reader of a mail opens, made from send.link and the token.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "mail/address.hpp"

namespace mailroom::mail {

/// The link of a mail, `https://app.example/{action}?token={token}`, before its values are known.
class LinkTemplate {
 public:
  /// Accepts an absolute http or https URL in ASCII with {token}, and {action} if it has any other
  /// placeholder.
  static std::variant<LinkTemplate, Refusal> parse(std::string_view text);

  /// The link with its values percent-encoded (RFC 3986, section 2.1).
  std::string link(std::string_view action, std::string_view token) const;

 private:
  enum class Value { none, action, token };
  using Piece = std::pair<std::string, Value>;  ///< literal text, and the value after it

  explicit LinkTemplate(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}
  static std::variant<std::vector<Piece>, Refusal> split(std::string_view text);

  std::vector<Piece> pieces_;
};

}  // namespace mailroom::mail
