#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "events/event.hpp"

namespace mailroom {

/// The operator's format for lines: `{time} {event} {token}`. `{{` and `}}` are braces; `\n`, `\t` and `\\`
/// are as in C.
class EventTemplate {
 public:
  /// Throws Error(usage) for an unmatched brace, an unknown placeholder (the hint lists all) or an unknown
  /// escape.
  explicit EventTemplate(std::string_view text);

  /// Returns the line with its newline. A field without a value is `-`.
  std::string render(const Event& event) const;

 private:
  struct Piece {
    std::string literal;
    std::string (*field)(const Event&) = nullptr;  ///< after the literal; null at the end
  };
  std::vector<Piece> pieces_;
};

/// Lists all placeholders: `{time}, {event}, …`.
std::string template_placeholders();

}  // namespace mailroom
