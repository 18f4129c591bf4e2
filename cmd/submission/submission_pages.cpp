// Metrics of what came in; what became of it is in those of the sender.

#include "cmd/submission/submission_pages.hpp"

#include "metrics/metric_families.hpp"
#include "metrics/process_metrics.hpp"

namespace mailroom::cmd {
namespace {

constexpr const char* mails_name = "mailroom_submission_mails_total";
constexpr const char* mails_help = "Mails that were stored, by the role that submitted them.";
constexpr const char* refusals_name = "mailroom_submission_refusals_total";
constexpr const char* refusals_help =
    "Refusals of commands, logins, mails and requests, by the code of the reply.";

metrics::MetricFamilies families_of(const submission::ServiceCounts& counts) {
  metrics::MetricFamilies families;
  for (const auto& [role, mails] : counts.accepted)
    families.counter(mails_name, mails_help, {{"role", role}}, static_cast<double>(mails));
  for (const auto& [code, refusals] : counts.refusals)
    families.counter(refusals_name, refusals_help, {{"code", std::to_string(code)}},
                     static_cast<double>(refusals));
  families.counter("mailroom_submission_commits_total",
                   "Transactions that stored mails: those of several clients share one.", {},
                   static_cast<double>(counts.commits));
  families.counter("mailroom_submission_logins_total", "Logins whose password was right.", {},
                   static_cast<double>(counts.logins));
  families.gauge("mailroom_submission_connections", "Clients that are connected.", {},
                 static_cast<double>(counts.connections));
  families.gauge("mailroom_submission_memory_bytes", "Memory of mails that are being taken.", {},
                 static_cast<double>(counts.memory));
  return families;
}

}  // namespace

std::string submission_metrics(const submission::ServiceCounts& counts, WallTime started) {
  auto families = families_of(counts).all();
  const auto of_process = metrics::process_metrics(started);
  families.insert(families.end(), of_process.all().begin(), of_process.all().end());
  return metrics::exposition_text(families);
}

SubmissionPages::SubmissionPages(const config::ListenAddress& address,
                                 std::function<submission::ServiceCounts()> counts)
    : counts_(std::move(counts)),
      started_(wall_now()),
      turned_(steady_now()),
      server_(address, [this](const process::HttpCall& call) { return page(call); }) {}

process::HttpPage SubmissionPages::page(const process::HttpCall& call) const {
  if (call.path == "/metrics")
    return {.text = submission_metrics(counts_(), started_), .type = metrics::exposition_type};
  if (call.path != "/healthz") return {.status = 404, .text = "there are /metrics and /healthz\n"};
  if (steady_now() - turned_.load() < longest_turn) return {.text = "ok\n"};
  return {.status = 503, .text = "the loop does not turn\n"};
}

}  // namespace mailroom::cmd
