// The Message-ID by which Amazon SES replaces that of a mail: it follows from what its answer says.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

namespace mailroom::ses {

/// For the MessageId of an answer, in a region such as eu-west-1.
inline std::string message_id_of(std::string_view id, std::string_view region) {
  const auto place = region == "us-east-1" ? std::string_view("email") : region;
  return std::string(id) + '@' + std::string(place) + ".amazonses.com";
}

/// For what the SMTP endpoint of a region, email-smtp.REGION.amazonaws.com, answers to a mail: `Ok ID`.
/// nullopt for another host; empty for other words.
inline std::optional<std::string> message_id_of_reply(std::string_view host, std::string_view reply) {
  constexpr std::string_view name = "email-smtp";
  constexpr std::string_view domain = ".amazonaws.com";
  const auto dot = host.find('.');
  if (!host.starts_with(name) || !host.ends_with(domain) || host.size() <= dot + domain.size())
    return std::nullopt;
  const auto region = host.substr(dot + 1, host.size() - domain.size() - dot - 1);
  constexpr std::string_view ok = "Ok ";
  const auto id = reply.starts_with(ok) ? reply.substr(ok.size()) : std::string_view();
  const bool is_id = !id.empty() && id.find_first_not_of("0123456789abcdef-") == std::string_view::npos;
  return is_id ? message_id_of(id, region) : std::string();
}

}  // namespace mailroom::ses
