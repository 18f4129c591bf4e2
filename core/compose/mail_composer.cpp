// Looks the profile up first: what is unknown waits, as a reload may bring it.

#include "compose/mail_composer.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <set>
#include <utility>

#include "base/encoded_text.hpp"
#include "base/printable.hpp"
#include "crypto/digest.hpp"

namespace mailroom::compose {
namespace {

std::string_view profile_of(const claim::TokenRow& row) {
  return row.content == nullptr ? std::string_view() : row.content->profile;
}

}  // namespace

const MailProfiles::Entry* MailProfiles::find(const claim::TokenRow& row) const {
  const auto name = profile_of(row);
  if (name.empty() || name == config::default_profile) return &default_;
  const auto found = others_.find(name);
  return found == others_.end() ? nullptr : &found->second;
}

std::optional<delivery::Withheld> MailProfiles::withheld(const claim::TokenRow& row) const {
  const auto* const profile = find(row);
  auto withheld = (profile == nullptr ? default_ : *profile).writer->withheld(row);
  // Who may have mails holds for all profiles.
  if (profile != nullptr || (withheld && withheld->state == fate::Outcome::cancelled)) return withheld;
  return delivery::Withheld{fate::Outcome::deferred,
                            fmt::format("there is no profile {}", shown_text(profile_of(row)))};
}

std::vector<std::string> MailProfiles::warnings() const {
  std::vector<std::string> all;
  std::set<std::string_view> seen;
  std::set<const std::vector<std::string>*> sets;
  const auto add_new = [&](const Entry& entry) {
    const auto& own = entry.writer->warnings();
    if (!sets.insert(&own).second) return;
    std::ranges::copy_if(own, std::back_inserter(all),
                         [&](const std::string& text) { return seen.insert(text).second; });
  };
  add_new(default_);
  for (const auto& [name, entry] : others_)
    add_new(entry);
  return all;
}

int MailComposer::begin(const claim::Lease& lease, int /*limit*/) {
  queue_ = lease.queue;
  if (reader_) reader_->forget();
  return 1;
}

std::size_t MailComposer::lane_of(const claim::TokenRow& row) const {
  const auto* const profile = profiles_->find(row);
  return profile == nullptr ? 0 : profile->lane;
}

delivery::Composer::Added MailComposer::add(const claim::TokenRow& row, std::string_view token,
                                            delivery::DeliveryHistory history) {
  if (auto withheld = profiles_->withheld(row)) return std::move(*withheld);
  const auto& profile = *profiles_->find(row);
  const auto& writer = *profile.writer;
  std::vector<mail::Attachment> attachments;
  if (row.content != nullptr && row.content->attachments > 0 && reader_) {
    auto read = reader_->read(row.content->id, writer.max_size());
    if (auto* refusal = std::get_if<mail::Refusal>(&read)) return std::move(*refusal);
    attachments = std::get<std::vector<mail::Attachment>>(std::move(read));
  }
  const bool has_files = !attachments.empty();
  auto written = writer.write(queue_, row, token, std::move(attachments));
  if (auto* refusal = std::get_if<mail::Refusal>(&written)) return std::move(*refusal);
  auto& mail = std::get<WrittenMail>(written);
  delivery::Composed composed;
  const auto hash = profiles_->records_evidence() ? hex_text(crypto::sha256({mail.message})) : std::string();
  composed.bytes = std::move(mail.message);
  composed.lane = profile.lane;
  composed.message.queue = queue_;
  composed.message.line = 1;
  composed.message.action = row.action->name;
  composed.message.tokens = {row.id};
  composed.message.created_at = row.created_at;
  composed.message.envelope = std::move(mail.envelope);
  composed.message.has_files = has_files;
  composed.message.is_raw = mail.is_raw;
  composed.tokens.push_back({.history = std::move(history),
                             .text = std::string(token),
                             .address = composed.message.envelope.to,
                             .dated = row.dated(),
                             .message_id = std::move(mail.message_id),
                             .content_hash = hash,
                             .templates = profiles_->records_evidence() ? std::move(mail.templates) : ""});
  return composed;
}

}  // namespace mailroom::compose
