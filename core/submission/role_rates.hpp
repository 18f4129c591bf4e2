// How many mails a role may submit, in the memory of this service.
#pragma once

#include <map>
#include <string>

#include "base/clock.hpp"
#include "config/rate.hpp"

namespace mailroom::submission {

/// A role may send all mails of a period at once; they come back one after the other.
class RoleRates {
 public:
  /// Counts a mail of the role; false if it has sent as many as it may.
  bool take(const std::string& role, const config::Rate& rate, TimePoint now);

 private:
  struct Left {
    double mails = 0;
    TimePoint at{};
  };
  std::map<std::string, Left> left_;
};

}  // namespace mailroom::submission
