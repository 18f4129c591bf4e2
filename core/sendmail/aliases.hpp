// The file of aliases, as /etc/aliases.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace mailroom::sendmail {

class Aliases {
 public:
  Aliases() = default;
  /// `text` as of aliases(5): `root: ada@x.example, ops`, comments, folded lines.
  explicit Aliases(std::string_view text);

  /// Of a file, now; none if it cannot be read.
  static Aliases of_file(const std::string& path);

  /// Whom mails to `recipients` go to: the aliases of those that are local are followed; others stay as they
  /// are. Each once. Throws Error(unusable) for an alias of a file, a program or an :include:, which get no
  /// mail here.
  std::vector<std::string> resolved(const std::vector<std::string>& recipients) const;

 private:
  void follow(const std::string& recipient, int depth, std::vector<std::string>& found) const;

  std::map<std::string, std::vector<std::string>> targets_;
};

}  // namespace mailroom::sendmail
