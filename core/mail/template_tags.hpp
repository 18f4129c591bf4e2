// The tags of a Mustache template with their positions, for error messages with a line.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom {

/// One tag of a Mustache template.
struct TemplateTag {
  enum class Kind { variable, unescaped, section, inverted, end, partial, comment };
  Kind kind = Kind::variable;
  std::string name;          ///< without blanks around it
  std::size_t position = 0;  ///< of its first brace, in bytes

  bool operator==(const TemplateTag&) const = default;
};

/// Why a template does not parse.
struct TemplateDefect {
  std::size_t position = 0;
  std::string reason;

  bool operator==(const TemplateDefect&) const = default;
};

/// The tags of a template in order, up to the first defect.
struct TemplateTags {
  std::vector<TemplateTag> tags;
  std::optional<TemplateDefect> defect;
};

/// Finds the tags as the Mustache library does, which tells neither their names nor their positions. A tag
/// that changes the delimiters is a defect, and so are sections nested more than 32 deep: the library is
/// recursive.
TemplateTags find_tags(std::string_view text);

/// The line of a byte offset, from 1.
std::size_t line_of(std::string_view text, std::size_t position);

}  // namespace mailroom
