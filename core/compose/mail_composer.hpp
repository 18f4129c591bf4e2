// Makes the mails of a batch: each by the writer of its profile.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "claim/queue_session.hpp"
#include "compose/attachment_reader.hpp"
#include "compose/mail_writer.hpp"
#include "delivery/composer.hpp"

namespace mailroom::compose {

/// Who writes the mails of each profile, and by which of the sink's lanes they leave.
class MailProfiles {
 public:
  struct Entry {
    std::shared_ptr<const MailWriter> writer;
    std::size_t lane = 0;
  };

  /// `of_default`: of mails that name no profile, or `default`.
  explicit MailProfiles(Entry of_default) : default_(std::move(of_default)) {}
  void add(const std::string& name, Entry entry) { others_[name] = std::move(entry); }
  /// The SHA-256 of each mail and the files of its template are recorded.
  void record_evidence() { records_evidence_ = true; }
  bool records_evidence() const { return records_evidence_; }

  /// The profile of a token's mail; null if the configuration has none of that name.
  const Entry* find(const claim::TokenRow& row) const;
  /// Why the configuration has no mail for this token, ever or yet; nullopt if find() writes it one.
  std::optional<delivery::Withheld> withheld(const claim::TokenRow& row) const;
  /// What is probably wrong in the templates.
  std::vector<std::string> warnings() const;

 private:
  Entry default_;
  std::map<std::string, Entry, std::less<>> others_;
  bool records_evidence_ = false;
};

/// Writes the mail of each token at once.
class MailComposer final : public delivery::Composer {
 public:
  /// `reader` may be null: then no message has attachments.
  explicit MailComposer(std::shared_ptr<const MailProfiles> profiles,
                        std::unique_ptr<AttachmentReader> reader = nullptr)
      : profiles_(std::move(profiles)), reader_(std::move(reader)) {}

  int begin(const claim::Lease& lease, int limit) override;
  Added add(const claim::TokenRow& row, std::string_view token, delivery::DeliveryHistory history) override;
  std::size_t lane_of(const claim::TokenRow& row) const override;
  std::optional<delivery::Composed> finish() override { return std::nullopt; }

 private:
  std::shared_ptr<const MailProfiles> profiles_;
  std::unique_ptr<AttachmentReader> reader_;
  std::string queue_;
};

}  // namespace mailroom::compose
