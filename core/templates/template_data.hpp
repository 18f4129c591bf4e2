// The data of a message as its templates see it: JSON whose numbers stay as they are written.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "mail/address.hpp"

namespace mailroom::templates {

constexpr std::size_t largest_data = 1024 * 1024;  ///< bytes of JSON
constexpr std::size_t most_values = 100'000;       ///< in all objects and lists
constexpr std::size_t deepest_value = 64;          ///< of objects and lists within each other

/// A value of JSON.
struct TemplateData {
  enum class Kind { null, boolean, number, text, list, object };

  Kind kind = Kind::object;
  std::string text{};  ///< of a text; of a number and a boolean as JSON writes them
  std::vector<TemplateData> items{};
  std::map<std::string, TemplateData, std::less<>> members{};

  /// True if a section of it is shown: not for null, false, 0, an empty text and an empty list.
  bool is_true() const;
};

/// Reads an object of JSON; an empty text is an empty one. Refuses anything else, a NUL or half a surrogate
/// pair in a text, and what is larger than the limits above. `12.50` stays `12.50`.
std::variant<TemplateData, mail::Refusal> parse_template_data(std::string_view json);

}  // namespace mailroom::templates
