// Mails that were handed over, made again: whether they are the same bytes as the hash on record.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/clock.hpp"
#include "compose/attachment_reader.hpp"
#include "compose/mail_composer.hpp"
#include "crypto/key.hpp"
#include "db/connection.hpp"

namespace mailroom::compose {

/// What is on record of the last mail of a token that was accepted, or may have been.
struct SentMail {
  std::string queue{};
  std::int64_t token = 0;
  std::string address{};  ///< of the recipient that the message names; empty if that is forgotten
  std::string state{};    ///< `accepted` or `unknown`
  Moment at{};
  std::int64_t batch = 0;
  std::optional<int> lease{};  ///< the last one of its batch; nullopt if the batch was pruned
  std::string key{};           ///< fingerprint of the key that signed it; empty if its batch names none
  std::string content_hash{};  ///< in hex; empty with send.evidence off
  std::string templates{};     ///< the files that it was made of, by comma
  std::optional<Moment> erased_at{};  ///< when content or addresses of its message were removed
};

/// A mail that was made again.
struct RemadeMail {
  std::string bytes{};      ///< with `x` in place of a token and zeros in place of a code, which are valid
  bool has_token = false;   ///< and so differs from what was mailed
  std::string hash{};       ///< of what was mailed, in hex
  std::string templates{};  ///< the files that it is made of now

  bool is_same(const SentMail& sent) const { return hash == sent.content_hash; }
};

/// The mails of a message, ordered by token and queue.
std::vector<SentMail> read_sent_mails(db::Connection& connection, std::int64_t message);

/// Makes the mail as its sender did: of the row, the data and the key of today, and of the templates and
/// settings of `profiles`. Refuses with the reason what cannot be made.
std::variant<RemadeMail, mail::Refusal> make_again(db::Connection& connection, const MailProfiles& profiles,
                                                   const crypto::Key& key, AttachmentReader& reader,
                                                   const SentMail& sent);

/// Why a mail can differ from that on record, as far as the record tells. `key`: fingerprint of that of
/// today.
std::string reason_of_difference(const SentMail& sent, const RemadeMail& made, const std::string& key);

}  // namespace mailroom::compose
