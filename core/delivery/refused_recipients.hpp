// Remembers how often a recipient was refused as too much, from one of its batches to the next.
#pragma once

#include <map>
#include <string>

#include "delivery/pace.hpp"

namespace mailroom {

/// The refusals of mails that were given back, by recipient. Keeps a few hundred.
class RefusedRecipients {
 public:
  /// What is known of the recipient of a mail that comes again.
  Refusals take(const std::string& recipient) {
    const auto known = refused_.find(recipient);
    if (known == refused_.end()) return {};
    auto refusals = known->second;
    refused_.erase(known);
    refusals.begin_again();
    return refusals;
  }
  void keep(const std::string& recipient, const Refusals& refusals) {
    constexpr std::size_t most = 256;
    if (recipient.empty() || refusals.are_none()) return;
    if (refused_.size() >= most) refused_.clear();
    refused_[recipient] = refusals;
  }

 private:
  std::map<std::string, Refusals> refused_;
};

}  // namespace mailroom
