// Headers only: the words of a body may be quoted.

#include "bounce/auto_reply.hpp"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.hpp"

namespace mailroom {
namespace {

constexpr std::array<std::string_view, 30> failure_subjects{"undeliver",
                                                            "returned mail",
                                                            "returned to sender",
                                                            "returning message",
                                                            "failure notice",
                                                            "mail delivery",
                                                            "delivery status",
                                                            "delivery fail",
                                                            "delivery has",
                                                            "delivery notification",
                                                            "delivery report",
                                                            "delivery error",
                                                            "delayed mail",
                                                            "mail system error",
                                                            "message could not",
                                                            "could not send message",
                                                            "warning: message",
                                                            "non-delivery",
                                                            "message not deliver",
                                                            "could not be delivered",
                                                            "was not delivered",
                                                            "mail failure",
                                                            "non remis",
                                                            "non remise",
                                                            "unzustellbar",
                                                            "nicht zustellbar",
                                                            "no se puede entregar",
                                                            "non recapitabile",
                                                            "не доставлено",
                                                            "rejected:"};

constexpr std::array<std::string_view, 22> reply_subjects{"auto:",
                                                          "autoreply",
                                                          "auto reply",
                                                          "auto-reply",
                                                          "auto response",
                                                          "autoresponse",
                                                          "auto-response",
                                                          "automatic reply",
                                                          "automatic response",
                                                          "automated reply",
                                                          "out of office",
                                                          "out of the office",
                                                          "vacation",
                                                          "away from my mail",
                                                          "abwesenheit",
                                                          "automatische antwort",
                                                          "réponse automatique",
                                                          "absence du bureau",
                                                          "respuesta automática",
                                                          "risposta automatica",
                                                          "автоответ",
                                                          "自動返信"};

template <std::size_t size>
bool holds_any(const std::string& text, const std::array<std::string_view, size>& parts) {
  return std::any_of(parts.begin(), parts.end(),
                     [&](std::string_view part) { return text.find(part) != std::string::npos; });
}

template <std::size_t size>
bool begins_with_any(const std::string& text, const std::array<std::string_view, size>& starts) {
  return std::any_of(starts.begin(), starts.end(),
                     [&](std::string_view start) { return text.starts_with(start); });
}

/// No person begins a subject so, and a reply to one begins with `Re:`.
constexpr std::array<std::string_view, 11> clear_subjects{"mail delivery failed",
                                                          "delivery failure",
                                                          "permanent delivery failure",
                                                          "delivery status notification",
                                                          "mail could not be delivered",
                                                          "returned mail:",
                                                          "returned mail -",
                                                          "undeliverable:",
                                                          "undeliverable mail",
                                                          "undelivered mail",
                                                          "failure notice"};

/// `mailer-daemon` of any form, `postmaster`, and an empty envelope sender.
bool is_daemon(const std::string& from) {
  return from.find("mailer-daemon") != std::string::npos || from.find("mailer daemon") != std::string::npos ||
         from.find("mail delivery sub") != std::string::npos ||
         from.find("mail delivery sys") != std::string::npos;
}

}  // namespace

bool is_bounce_by_headers(const MailParts& mail) {
  const auto& headers = mail.headers;
  if (headers.has("x-failed-recipients")) return true;
  if (mail.report_type == "delivery-status") return true;
  const auto from = lower_case(headers.first("from"));
  if (is_daemon(from)) return true;
  const auto subject = lower_case(headers.first("subject"));
  if (begins_with_any(subject, clear_subjects)) return true;
  const auto path = lower_case(headers.first("return-path"));
  const bool is_null_path = headers.has("return-path") && (path.empty() || path == "<>");
  const bool is_postmaster = from.find("postmaster") != std::string::npos ||
                             from.find("post_master") != std::string::npos ||
                             path.find("mailer-daemon") != std::string::npos;
  if (is_postmaster && is_null_path) return true;
  return (is_postmaster || is_null_path) && holds_any(subject, failure_subjects);
}

bool is_auto_reply(const MailParts& mail) {
  const auto& headers = mail.headers;
  const auto submitted = lower_case(headers.first("auto-submitted"));
  if (submitted.starts_with("auto-replied")) return true;
  if (submitted == "no") return false;
  if (headers.has("x-autoreply") || headers.has("x-autorespond") || headers.has("x-autoresponder"))
    return true;
  const auto precedence = lower_case(headers.first("precedence"));
  if (precedence == "auto_reply" || precedence == "auto-reply") return true;
  if (lower_case(headers.first("x-apple-action")) == "vacation") return true;
  return begins_with_any(lower_case(headers.first("subject")), reply_subjects);
}

}  // namespace mailroom
