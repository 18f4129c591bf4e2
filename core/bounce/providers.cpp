// The list of providers, and whose a host is.

#include <algorithm>
#include <array>

#include "base/text.hpp"
#include "bounce/provider.hpp"

namespace mailroom::bounce {

/// Each is defined in the directory of its name.
extern const Provider ses, resend, postmark, mailgun, sendgrid, brevo, mailjet, sparkpost, generic;

namespace {

constexpr std::array known_providers{&ses,   &resend,  &postmark,  &mailgun, &sendgrid,
                                     &brevo, &mailjet, &sparkpost, &generic};

/// `pattern` may have one `*`.
bool fits_host(std::string_view host, std::string_view pattern) {
  const auto star = pattern.find('*');
  if (star == std::string_view::npos) return host == pattern;
  return host.size() >= pattern.size() && host.starts_with(pattern.substr(0, star)) &&
         host.ends_with(pattern.substr(star + 1));
}

}  // namespace

std::span<const Provider* const> providers() {
  return known_providers;
}

const Provider* find_provider(std::string_view name) {
  const auto found = std::ranges::find(known_providers, name, [](const auto* each) { return each->name; });
  return found == known_providers.end() ? nullptr : *found;
}

const Provider* provider_of_host(std::string_view host) {
  const auto name = lower_case(host);
  const auto found = std::ranges::find_if(known_providers, [&](const auto* each) {
    return std::ranges::any_of(each->hosts, [&](auto pattern) { return fits_host(name, pattern); });
  });
  return found == known_providers.end() ? nullptr : *found;
}

}  // namespace mailroom::bounce
