// Events in a queue of Amazon SQS. What may be matched later stays in the queue, which shows it again after
// its visibility timeout.

#include <algorithm>

#include "base/error.hpp"
#include "cmd/bounce/event_sources.hpp"
#include "webhook/sqs_queue.hpp"

namespace mailroom::cmd {
namespace {

constexpr std::chrono::seconds shortest_pause{1};
constexpr std::chrono::seconds longest_pause{30};

/// Deletes a message when its event is on record: one that comes again changes nothing.
class EventQueue final : public ProviderEvents {
 public:
  /// Throws as SqsQueue(). `once`: read() ends when the queue is empty.
  EventQueue(const std::string& url, bool once, Context& context);

  ExitCode read(BounceReader& reader, process::StopSignal& stop) override;

 private:
  std::size_t read_some(BounceReader& reader);

  Context& context_;
  webhook::SqsQueue queue_;
  std::string source_;
  bool once_;
};

EventQueue::EventQueue(const std::string& url, bool once, Context& context)
    : context_(context),
      queue_(url, context.settings()),
      source_(url.substr(url.rfind('/') + 1)),
      once_(once) {}

ExitCode EventQueue::read(BounceReader& reader, process::StopSignal& stop) {
  Milliseconds pause = shortest_pause;
  while (!stop.requested()) {
    try {
      const auto count = read_some(reader);
      pause = shortest_pause;
      if (count > 0) continue;
      reader.tell_count();
      if (once_) break;
    } catch (const db::ConnectionLost&) {
      throw;
    } catch (const Error& error) {
      if (once_) throw;
      context_.log().warn("the queue cannot be read", {{"reason", error.what()}});
      stop.sleep_for(pause);
      pause = std::min<Milliseconds>(2 * pause, longest_pause);
    }
  }
  reader.tell_count();
  return ExitCode::done;
}

/// Returns how many messages were deleted.
std::size_t EventQueue::read_some(BounceReader& reader) {
  const auto messages = queue_.receive();
  std::vector<std::vector<suppression::Report>> reports;
  std::vector<suppression::Report> all;
  for (const auto& message : messages) {
    reports.push_back(reader.judge(bounce::read_events(message.body, *bounce::find_provider("ses")).events));
    all.insert(all.end(), reports.back().begin(), reports.back().end());
  }
  const auto recorded = reader.record(source_, all);
  std::vector<std::string> done;
  auto next = recorded.cbegin();
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if (!may_be_matched_later(reports[i], next, wall_now())) done.push_back(messages[i].receipt);
  }
  queue_.remove(done);
  return done.size();
}

}  // namespace

std::unique_ptr<ProviderEvents> open_event_queue(const std::string& url, bool once, Context& context) {
  return std::make_unique<EventQueue>(url, once, context);
}

}  // namespace mailroom::cmd
