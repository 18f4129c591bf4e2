// To whom a mail goes in fact: on a staging system not to its recipient.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "mail/address.hpp"

namespace mailroom::mail {

/// What send.redirect_to and send.allow say. Without both, every mail goes to its recipient.
class Redirection {
 public:
  /// Sends the mails of all others to `to`.
  void redirect_to(Address to) { to_ = std::move(to); }
  /// Lets the recipients that `entry` names have their mails: an address, or all of `@domain`. Returns why
  /// it names none.
  std::optional<Refusal> allow(std::string_view entry);

  /// Where a mail for `recipient` goes; nullopt: nowhere.
  std::optional<Address> destination_of(const Address& recipient) const;
  bool changes_nothing() const { return !to_ && allowed_.empty(); }

 private:
  bool allows(const Address& recipient) const;

  std::optional<Address> to_;
  std::set<std::string, std::less<>> allowed_;  ///< in lower case: addresses, and domains after an @
};

}  // namespace mailroom::mail
