// Makes one statement of many reports; migrations/functions/bounces.sql finds the mails and does the rest.

#include "suppression/bounce_records.hpp"

#include <charconv>

#include "base/encoded_text.hpp"
#include "base/json.hpp"
#include "base/printable.hpp"
#include "base/text.hpp"
#include "crypto/digest.hpp"
#include "mail/bounce_address.hpp"

namespace mailroom::suppression {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kept_of_report = 16'384;
constexpr auto unread = "unread";

std::string digest_of(std::string_view bytes) {
  return hex_text(crypto::sha256({bytes}));
}

/// The bytes of a queue's name in a Message-ID, where `=2E` stands for a dot.
std::optional<std::string> decoded_queue(std::string_view text) {
  std::string queue;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '=') {
      queue += text[i];
      continue;
    }
    const auto digits = text.substr(i + 1, 2);
    unsigned value = 0;
    const auto* const end = digits.data() + digits.size();
    if (digits.size() != 2 || std::from_chars(digits.data(), end, value, 16).ptr != end || value == 0)
      return std::nullopt;
    queue += static_cast<char>(value);
    i += 2;
  }
  return is_utf8(queue) ? std::optional(queue) : std::nullopt;
}

/// A column has no NUL, and valid UTF-8 only.
Json column_text(const std::string& text) {
  return text_or_null<Json>(printable(text));
}

Json message_ids_of(const bounce::Bounce& bounce) {
  auto ids = Json::array();
  const auto id = parse_mail_id(bounce.message_id);
  // One that an application gave.
  if (!id && !bounce.message_id.empty()) ids.push_back({{"given", column_text(bounce.message_id)}});
  if (!id) return ids;
  Json object{{"queue", id->queue}, {"key", id->key}};
  if (id->token > 0) object["token"] = id->token;
  if (id->message > 0) object["message"] = id->message;
  ids.push_back(std::move(object));
  return ids;
}

/// Null for a report that is no event of a provider.
Json provider_mail_of(const bounce::Bounce& bounce) {
  const auto& mail = bounce.mail;
  if (mail.id.empty() && mail.token <= 0) return {};
  Json object{{"id", column_text(mail.id)}, {"queue", column_text(mail.queue)}};
  object["token"] = mail.token > 0 ? Json(mail.token) : Json();
  object["message_id"] = column_text(mail.message_id);
  object["sent_at"] = mail.sent_at ? Json(in_seconds(*mail.sent_at)) : Json();
  return object;
}

Json row_of(const Report& report, std::size_t place, const bounce::BounceRecipient& recipient) {
  Json row{{"digest", report.digest},
           {"place", place},
           {"tokens", report.tokens},
           {"message_ids", message_ids_of(*report.bounce)},
           {"mail", provider_mail_of(*report.bounce)},
           {"address", column_text(recipient.address)},
           {"final", column_text(recipient.final_address)},
           {"kind", bounce::bounce_kind_name(recipient.kind)},
           {"reason", bounce::bounce_reason_name(recipient.reason)},
           {"status", column_text(recipient.status)},
           {"reply", column_text(recipient.diagnostic)},
           {"remote", column_text(recipient.remote_mta)},
           {"report", report.begin.empty() ? Json() : Json(hex_text(report.begin))}};
  if (!report.proves) row["counts"] = false;
  if (report.bounce->happened_at) row["at"] = in_seconds(*report.bounce->happened_at);
  row["code"] = recipient.code == 0 ? Json() : Json(recipient.code);
  return row;
}

/// A report without recipients says that something came back, and is kept.
void add_rows(const Report& report, Json& rows) {
  const auto& recipients = report.bounce->recipients;
  for (std::size_t i = 0; i < recipients.size(); ++i)
    rows.push_back(row_of(report, i + 1, recipients[i]));
  if (!recipients.empty()) return;
  auto row = row_of(report, 1, {});
  row["kind"] = unread;
  row["reply"] = column_text(report.bounce->words);
  rows.push_back(std::move(row));
}

/// A mail that a mail program writes for its reader who wants no more (RFC 2369): whoever wrote it has the id
/// from the mail.
void read_wish(Report& report, const BounceProof& proof) {
  if (proof.mailto.empty()) return;
  auto& bounce = *report.bounce;
  for (const auto& address : bounce.to) {
    const auto token =
        mail::token_of_bounce_id(mail::bounce_id_in(address, proof.mailto), proof.home, proof.keys);
    if (!token) continue;
    report.tokens = {*token};
    bounce.is_report = true;
    bounce::BounceRecipient recipient;
    recipient.kind = bounce::BounceKind::unsubscribed;
    recipient.reason = bounce::BounceReason::unsubscribed;
    bounce.recipients = {recipient};
    return;
  }
}

}  // namespace

std::optional<MailId> parse_mail_id(std::string_view text) {
  const auto at = text.rfind('@');
  if (at == std::string_view::npos) return std::nullopt;
  const auto parts = split(text.substr(0, at), '.');
  if (parts.size() != 4 || parts[3] != "mailroom" || parts[2].empty()) return std::nullopt;
  const auto queue = decoded_queue(parts[0]);
  const bool is_message = parts[2].front() == 'm';
  const auto number = parse_number<std::int64_t>(parts[2].substr(is_message ? 1 : 0));
  if (!queue || !number || *number < 1) return std::nullopt;
  return MailId{.queue = *queue,
                .key = std::string(parts[1]),
                .token = is_message ? 0 : *number,
                .message = is_message ? *number : 0};
}

Report judge_event(bounce::ReadEvent event, const BounceProof& proof) {
  auto& bounce = event.bounce;
  Report report{.digest = digest_of(bounce.event.empty() ? event.bytes : bounce.event),
                .begin = event.bytes.substr(0, kept_of_report)};
  if (const auto token = mail::token_of_bounce_id(bounce.envelope_id, proof.home, proof.keys))
    report.tokens.push_back(*token);
  const bool is_named = !bounce.mail.id.empty() || bounce.mail.token > 0;
  const bool is_ours = is_named || !report.tokens.empty() || parse_mail_id(bounce.message_id).has_value();
  // Other applications mail by the same account: there is nothing to wait for.
  if (!is_ours) bounce.mail.sent_at.reset();
  // All who got a copy know the Message-ID.
  report.proves = is_named || !report.tokens.empty() || proof.pattern.empty();
  report.bounce = std::move(bounce);
  return report;
}
Report judge_report(std::string_view bytes, const BounceProof& proof) {
  Report report{.digest = digest_of(bytes), .begin = {}, .bounce = bounce::read_mail(bytes)};
  const auto add = [&](const std::string& id) {
    if (const auto token = mail::token_of_bounce_id(id, proof.home, proof.keys))
      report.tokens.push_back(*token);
  };
  add(report.bounce->envelope_id);
  for (const auto* const addresses : {&report.bounce->to, &report.bounce->returned_from}) {
    for (const auto& address : *addresses)
      add(mail::bounce_id_in(address, proof.pattern));
  }
  if (!report.bounce->is_report) read_wish(report, proof);
  // All who got a copy know the Message-ID.
  if (!proof.pattern.empty()) report.bounce->message_id.clear();
  if (!report.bounce->is_report && report.tokens.empty()) {
    report.bounce.reset();
    return report;
  }
  const bool is_clear = !report.tokens.empty() && !report.bounce->recipients.empty();
  if (!is_clear) report.begin = bytes.substr(0, kept_of_report);
  return report;
}

std::string home_name(db::Connection& connection) {
  return connection.run("SELECT mailroom_home_name()").text();
}

std::vector<RecordedBounce> record_bounces(db::Connection& connection, const std::string& source,
                                           const std::vector<Report>& reports,
                                           const std::optional<config::Rate>& suppress_after) {
  auto rows = Json::array();
  for (const auto& report : reports) {
    if (report.counts()) add_rows(report, rows);
  }
  std::vector<RecordedBounce> recorded;
  if (rows.empty()) return recorded;
  std::size_t next = 0;
  std::optional<int> most;
  std::optional<std::int64_t> period;
  if (suppress_after) most = suppress_after->count;
  if (suppress_after) period = suppress_after->period.count();
  for (const auto& row :
       connection.run("SELECT is_new, queue, token, address, suppressed, traceparent, created_at, message "
                      "FROM mailroom_record_bounces($1, $2::jsonb, $3, $4::bigint * interval '1 ms')",
                      source, json_text(rows), most, period)) {
    const auto& told = rows[next++];
    auto& bounce = recorded.emplace_back();
    bounce.kind = told["kind"];
    bounce.reason = told["reason"];
    for (const auto* key : {"status", "reply"}) {
      if (told[key].is_string())
        bounce.reply += (bounce.reply.empty() ? "" : " ") + told[key].get<std::string>();
    }
    bounce.is_new = row.flag("is_new");
    bounce.queue = row.text("queue");
    if (!row.is_null("token")) bounce.token = row.number("token");
    bounce.address = row.text("address");
    bounce.suppressed = row.flag("suppressed");
    bounce.traceparent = row.text("traceparent");
    if (!row.is_null("created_at")) bounce.created_at = row.number("created_at");
    if (!row.is_null("message")) bounce.message = row.number("message");
  }
  return recorded;
}

}  // namespace mailroom::suppression
