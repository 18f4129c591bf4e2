// Reads the token as the batch that mailed it had it, so that date and ids are those of that mail.

#include "compose/sent_mail.hpp"

#include <fmt/format.h>
#include <utility>

#include "base/encoded_text.hpp"
#include "claim/batch_fetch.hpp"
#include "crypto/digest.hpp"
#include "crypto/hmac.hpp"
#include "db/conninfo.hpp"
#include "db/values.hpp"

namespace mailroom::compose {
namespace {

/// Of each token the newest outcome by which its mail was accepted, or may have been.
const std::string sent_sql = fmt::format(R"(
SELECT d.queue, d.token, coalesce(mailroom_address((m.recipients || m.cc || m.bcc)[t.recipient]), e.address) AS address, e.state, {} AS at_us, e.batch, b.attempts AS lease, b.key, e.content_hash, e.templates,
  {} AS erased_us
FROM tokens t JOIN mailroom_deliveries d ON d.token = t.id
  JOIN mailroom_messages m ON m.id = t.message,
  LATERAL (
    SELECT * FROM (
      SELECT n, (a->>'at')::timestamptz, a->>'state', a->>'address', (a->>'batch')::bigint, a->>'content_hash', a->>'templates'
      FROM jsonb_array_elements(d.earlier_attempts) WITH ORDINALITY AS earlier (a, n)
      UNION ALL
      SELECT NULL, d.last_at, d.state, d.address, d.batch, encode(d.content_hash, 'hex'), d.templates)
      h (n, at, state, address, batch, content_hash, templates)
    WHERE h.state IN ('accepted', 'unknown') ORDER BY (h.state = 'accepted') DESC, h.n DESC NULLS FIRST LIMIT 1) e
  LEFT JOIN mailroom_batches b ON b.id = e.batch
WHERE t.message = $1 AND d.queue IN (SELECT j.job_type FROM jobs j)
ORDER BY d.token, d.queue)",
                                         db::microseconds_sql("e.at"), db::microseconds_sql("m.erased_at"));

mail::Refusal gone(const SentMail& sent) {
  return {fmt::format("batch {}, which had token {}, is no longer on record", sent.batch, sent.token)};
}

std::variant<WrittenMail, mail::Refusal> write_row(const MailProfiles& profiles, AttachmentReader& reader,
                                                   const std::string& queue, const claim::TokenRow& row,
                                                   std::string_view token) {
  const auto* const profile = profiles.find(row);
  if (profile == nullptr)
    return mail::Refusal{fmt::format("the profile '{}' is not configured", row.content->profile)};
  std::vector<mail::Attachment> attachments;
  if (row.content != nullptr && row.content->attachments > 0) {
    auto read = reader.read(row.content->id, profile->writer->max_size());
    if (auto* refusal = std::get_if<mail::Refusal>(&read)) return std::move(*refusal);
    attachments = std::get<std::vector<mail::Attachment>>(std::move(read));
  }
  return profile->writer->write(queue, row, token, std::move(attachments));
}

std::variant<RemadeMail, mail::Refusal> remake(const MailProfiles& profiles, const crypto::Key& key,
                                               AttachmentReader& reader, const std::string& queue,
                                               const claim::TokenRow& row) {
  crypto::Hmac hmac(key);
  std::string token;
  if (!row.action->path.empty()) {
    if (!row.secret) return mail::Refusal{"the token has no secret"};
    const auto text = queue::sign_token(hmac, *row.action, *row.secret, row.code);
    token.assign(text.begin(), text.end());
  }
  auto written = write_row(profiles, reader, queue, row, token);
  if (auto* refusal = std::get_if<mail::Refusal>(&written)) return std::move(*refusal);
  auto& mail = std::get<WrittenMail>(written);
  RemadeMail made{.bytes = std::move(mail.message),
                  .has_token = !token.empty(),
                  .hash = {},
                  .templates = std::move(mail.templates)};
  made.hash = hex_text(crypto::sha256({made.bytes}));
  if (!made.has_token) return made;
  // Whoever has a token acts for its owner.
  const std::string code(row.code.size(), '0');
  auto shown = row;
  shown.code = code;
  auto harmless = write_row(profiles, reader, queue, shown, std::string(token.size(), 'x'));
  if (auto* refusal = std::get_if<mail::Refusal>(&harmless)) return std::move(*refusal);
  made.bytes = std::move(std::get<WrittenMail>(harmless).message);
  return made;
}

}  // namespace

std::vector<SentMail> read_sent_mails(db::Connection& connection, std::int64_t message) {
  std::vector<SentMail> mails;
  for (const auto& row : connection.run(sent_sql, message)) {
    mails.push_back({.queue = row.text("queue"),
                     .token = row.number("token"),
                     .address = row.text("address"),
                     .state = row.text("state"),
                     .at = row.moment<std::chrono::microseconds>("at_us"),
                     .batch = row.number("batch"),
                     .lease = row.optional<int>("lease"),
                     .key = row.text("key"),
                     .content_hash = row.text("content_hash"),
                     .templates = row.text("templates"),
                     .erased_at = row.optional_moment<std::chrono::microseconds>("erased_us")});
  }
  return mails;
}

std::variant<RemadeMail, mail::Refusal> make_again(db::Connection& connection, const MailProfiles& profiles,
                                                   const crypto::Key& key, AttachmentReader& reader,
                                                   const SentMail& sent) {
  if (sent.erased_at)
    return mail::Refusal{
        fmt::format("the content of its message was removed at {}", moment_text(*sent.erased_at))};
  if (!sent.lease) return gone(sent);
  claim::BatchFetch fetch(connection, {.delivers = true, .with_creation = true, .reads_raw = true}, {}, "",
                          nullptr, nullptr);
  claim::ClaimedBatch batch;
  batch.reply.lease = claim::Lease{sent.batch, *sent.lease, sent.queue};
  std::variant<RemadeMail, mail::Refusal> made = gone(sent);
  fetch.read(batch, [&](const claim::TokenRow& row) {
    if (row.id == sent.token) made = remake(profiles, key, reader, sent.queue, row);
  });
  return made;
}

std::string reason_of_difference(const SentMail& sent, const RemadeMail& made, const std::string& key) {
  if (sent.templates != made.templates)
    return fmt::format("it was made of {}, and is made of {} now",
                       sent.templates.empty() ? "no template" : sent.templates,
                       made.templates.empty() ? "no template" : made.templates);
  if (!sent.key.empty() && sent.key != key)
    return fmt::format("key {} signed its links, and {} is the key of today", sent.key, key);
  if (!made.templates.empty())
    return "a template, or a setting of send, has changed since, or the sender has others than this command";
  return "a setting of send has changed since, or the sender has others than this command";
}

}  // namespace mailroom::compose
