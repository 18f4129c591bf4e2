// The fields of a header as they stand in a mail.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mailroom::submission {

struct HeaderField {
  std::string name{};        ///< in lower case
  std::string_view value{};  ///< folded, without blanks at its ends
  std::string_view whole{};  ///< with its line end
};

struct SplitMail {
  std::vector<HeaderField> fields{};
  std::string_view rest{};  ///< from the empty line on; without one, from the first line that is no field on
};

SplitMail split_mail(std::string_view mail);

}  // namespace mailroom::submission
