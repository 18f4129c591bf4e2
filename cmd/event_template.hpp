#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "feed/event.hpp"

namespace mailroom {

/// A line for each event, as the operator writes it: `{time} {event} {token}`. `{{` and `}}` stand for
/// braces,
/// `\n`, `\t` and `\\` for what they are in C.
class EventTemplate {
 public:
  /// Throws Error(usage) for a brace without its other half, an unknown placeholder (naming those there are)
  /// and an unknown escape.
  explicit EventTemplate(std::string_view text);

  /// The line with its newline. What an event does not have is `-`.
  std::string render(const Event& event) const;

 private:
  struct Piece {
    std::string literal;
    std::string (*field)(const Event&) = nullptr;  ///< after the literal; null at the end
  };
  std::vector<Piece> pieces_;
};

/// `{time}, {event}, …`
std::string template_placeholders();

}  // namespace mailroom
