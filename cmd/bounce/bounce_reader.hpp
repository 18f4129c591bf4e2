// Records reports, wherever they were read, and counts them for the log.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/command.hpp"
#include "suppression/bounce_records.hpp"
#include "suppression/preferences.hpp"
#include "trace/mail_tracer.hpp"

namespace mailroom::cmd {

/// What has been read, to tell the log.
struct BounceCount {
  std::int64_t reports = 0;
  std::int64_t others = 0;  ///< mails that are no reports
  std::int64_t known = 0;   ///< recipients of reports that were read before
  std::int64_t hard = 0;
  std::int64_t suppressed = 0;
  std::int64_t unmatched = 0;
  std::int64_t unread = 0;
  std::int64_t choices = 0;  ///< changes by links of mails

  void add(const suppression::RecordedBounce& bounce) {
    if (!bounce.is_new) ++known;
    if (!bounce.is_new) return;
    if (bounce.kind == "hard") ++hard;
    if (bounce.suppressed) ++suppressed;
    if (bounce.kind == "unread") ++unread;
    if (bounce.kind != "unread" && !bounce.token) ++unmatched;
  }
};

/// Somebody has to look at it: nothing was learnt from it.
bool needs_a_look(const suppression::RecordedBounce& bounce);

/// How many of the rows of record_bounces() are of the report.
std::size_t rows_of(const suppression::Report& report);

/// Judges reports by the keys and the pattern of the settings, and records them.
class BounceReader {
 public:
  /// `tracer` may be null.
  BounceReader(db::Connection& connection, Context& context, trace::MailTracer* tracer);

  /// Of a mail.
  suppression::Report judge(std::string_view bytes) { return suppression::judge_report(bytes, proof_); }
  /// Of events.
  std::vector<suppression::Report> judge(const std::vector<bounce::ReadEvent>& events);

  /// What became of each recipient.
  std::vector<suppression::RecordedBounce> record(const std::string& source,
                                                  const std::vector<suppression::Report>& reports);

  /// The database that links and ids are of.
  const std::string& home() const { return proof_.home; }
  /// Changes what the recipient of a mail gets, as he asks by its link.
  std::vector<suppression::TopicChoice> change(const suppression::PreferenceChange& change);

  /// Tells the log what was read since the last time, if anything was.
  void tell_count();

 private:
  db::Connection& connection_;
  Context& context_;
  trace::MailTracer* tracer_;
  suppression::BounceProof proof_;
  BounceCount count_;
};

}  // namespace mailroom::cmd
