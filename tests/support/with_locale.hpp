#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace mailroom::test {

/// Sets LC_ALL until the end of the scope.
class WithLocale {
 public:
  explicit WithLocale(const char* locale) {
    if (const char* before = std::getenv("LC_ALL")) before_ = before;
    setenv("LC_ALL", locale, 1);
  }
  ~WithLocale() {
    if (before_) {
      setenv("LC_ALL", before_->c_str(), 1);
    } else {
      unsetenv("LC_ALL");
    }
  }
  WithLocale(const WithLocale&) = delete;
  WithLocale& operator=(const WithLocale&) = delete;

 private:
  std::optional<std::string> before_{};
};

}  // namespace mailroom::test
