// Compares addresses in their one form, and domains as they are mailed.

#include "mail/redirection.hpp"

#include <fmt/format.h>
#include <variant>

#include "base/text.hpp"

namespace mailroom::mail {
namespace {

std::string domain_key(const Address& address) {
  return "@" + lower_case(address.domain);
}

}  // namespace

std::optional<Refusal> Redirection::allow(std::string_view entry) {
  const bool is_domain = entry.starts_with('@');
  const auto parsed = parse_address(is_domain ? fmt::format("any{}", entry) : std::string(entry));
  if (const auto* refusal = std::get_if<Refusal>(&parsed)) return *refusal;
  const auto& address = std::get<Address>(parsed);
  allowed_.insert(is_domain ? domain_key(address) : canonical_text(address));
  return std::nullopt;
}

std::optional<Address> Redirection::destination_of(const Address& recipient) const {
  if (changes_nothing() || allows(recipient)) return recipient;
  return to_;
}

bool Redirection::allows(const Address& recipient) const {
  return allowed_.contains(domain_key(recipient)) || allowed_.contains(canonical_text(recipient));
}

}  // namespace mailroom::mail
