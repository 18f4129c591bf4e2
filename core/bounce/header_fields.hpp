// Header fields of mails, and blocks of fields in reports.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mailroom {

/// The header fields of a mail that tell bounces, or all of a block in a report: names in lower case, values
/// unfolded and in UTF-8.
class HeaderFields {
 public:
  void add(std::string name, std::string value);
  /// The first field of that name; empty if there is none.
  const std::string& first(std::string_view name) const;
  bool has(std::string_view name) const;
  const std::vector<std::pair<std::string, std::string>>& all() const { return fields_; }
  bool is_empty() const { return fields_.empty(); }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

/// A value as it stands in a mail, folded and encoded (RFC 2047), as one line of UTF-8.
std::string field_text(std::string_view raw);

/// The blocks of header fields in `text`, with empty lines between them: at most `limit`.
std::vector<HeaderFields> read_field_blocks(std::string_view text, std::size_t limit);

}  // namespace mailroom
