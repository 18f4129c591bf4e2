// Lists of addresses as other programs write them: providers, spreadsheets, and our own export.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::suppression {

/// An address, and for which topic alone; empty: for all mails.
struct ListedAddress {
  std::string address{};
  std::string topic{};
};

/// Takes the addresses out of lines of CSV, where a first line without an address names the columns, or of
/// JSON, a value in each line or one in all of them. Pure.
class AddressList {
 public:
  /// A value of JSON may be so long, in bytes.
  static constexpr std::size_t longest_value = 64U << 20U;

  /// Those of the next line, without its end. Throws Error(usage) for JSON that is too long.
  std::vector<ListedAddress> read(std::string_view line);
  /// What remains is no value: empty, or the beginning of it.
  const std::string& rest() const { return begun_; }

 private:
  std::vector<ListedAddress> read_json(std::string_view line);
  std::string read_cell(std::string_view line);

  bool is_first_ = true;
  std::string begun_;  ///< JSON whose end is in a later line
  char separator_ = ',';
  std::size_t column_ = 0;
};

}  // namespace mailroom::suppression
