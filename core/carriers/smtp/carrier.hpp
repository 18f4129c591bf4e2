// Carries mails to SMTP relays: the connections, each with its thread.
//
// relay/ says which relay it is and as whom to log in; session/ delivers mails over one connection; dialogue/
// has the steps of SMTP and the bytes; login/ the mechanisms of AUTH; refusal/ what a reply means for the
// mail, for the relay and for doctor. check.cpp is what doctor says.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/threads.hpp"
#include "carriers/carriers.hpp"
#include "carriers/smtp/relay/relay.hpp"
#include "carriers/smtp/session/session.hpp"
#include "config/relay_path.hpp"
#include "delivery/carrier.hpp"

namespace mailroom::smtp {

/// Delivers mails over several connections, a thread each, so that a slow recipient delays no other mail.
/// Each relay is an endpoint. A connection is kept for the next mail, which prefers one that is open.
class SmtpCarrier final : public delivery::Carrier {
 public:
  struct Options {
    std::vector<RelayUrl> relays;  ///< at least one
    RelayOptions relay{};
    int connections = 4;  ///< how many mails are delivered at the same time
  };

  /// Throws Error(configuration) as check_relay(). Starts the threads; connects when the first mail comes.
  explicit SmtpCarrier(Options options);
  /// cancel(), then says goodbye to the relays.
  ~SmtpCarrier() override;
  SmtpCarrier(const SmtpCarrier&) = delete;
  SmtpCarrier& operator=(const SmtpCarrier&) = delete;

  std::vector<std::string> endpoints() const override;
  void submit(delivery::Message message) override;
  int fd() const override { return ready_.fd(); }
  std::vector<delivery::Answer> take() override;
  void call_below(std::size_t unanswered) override;
  std::size_t unfinished() const override;
  /// Takes a moment, however long a relay hangs.
  void cancel() override;
  /// So many that a connection rarely waits for the thread that submits, as to wake a thread costs as much as
  /// a tenth of a delivery; few where a mail takes long, and after one that was not accepted.
  int ahead() const override { return std::max<int>(ahead_, windows_); }
  void limit_connections(std::size_t endpoint, int most) override;
  bool asks_for_clearance() const override { return true; }

 private:
  /// A worker's connection to a relay.
  struct Connection {
    std::unique_ptr<RelaySession> session;
    bool is_open = false;  ///< or being opened
    bool works = false;    ///< the relay has answered a mail on it
  };
  struct Worker {
    std::vector<Connection> connections;  ///< to each relay
    std::optional<delivery::Message> next{};
    bool is_busy = false;
    std::size_t window = 1;  ///< how many mails its connection may carry together
    TimePoint idle_since{};
    std::condition_variable wakes{};
    std::thread thread{};
  };

  // All but these three need the mutex.
  void work(Worker& worker);
  void deliver(Worker& worker, std::unique_lock<std::mutex>& lock);
  void rest(Worker& worker, std::unique_lock<std::mutex>& lock);
  /// One that is idle, with an open connection to the relay if there is one; null if all are busy.
  Worker* idle_worker(std::size_t endpoint);
  /// Does not wake it.
  static void give(Worker& worker, delivery::Message message);
  /// How many connections to the relay are open.
  int open_connections(std::size_t endpoint) const;
  bool has_to_rest(const Worker& worker) const;
  std::vector<delivery::Message> taken_by(Worker& worker, std::unique_lock<std::mutex>& lock);
  void note_rest(Worker& worker, std::size_t endpoint);
  void note_answer(Worker& worker, std::size_t endpoint, delivery::Answer& answer);
  void give_back_untried(std::size_t endpoint);
  /// How many may wait after this answer.
  void look_ahead(const delivery::Answer& answer);
  void keep(delivery::Answer answer);

  Options options_;
  EventFd ready_;
  mutable std::mutex mutex_;
  std::condition_variable cancelled_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<int> limits_;  ///< connections to each relay
  std::deque<delivery::Message> queue_;
  std::vector<delivery::Answer> answers_;
  std::vector<bool> has_failed_;  ///< each relay, by an answer that take() has not returned
  std::size_t unanswered_ = 0;
  std::size_t call_below_ = std::numeric_limits<std::size_t>::max();
  std::atomic<int> ahead_;
  std::atomic<int> windows_ = 0;  ///< what all connections together carry in two round trips
  bool has_ended_ = false;
};

/// Throws Error(configuration) as read_relays().
std::unique_ptr<delivery::Carrier> make_smtp_carrier(const config::RelayPath& path);

/// `libcurl 7.88.1`
std::string smtp_library();

}  // namespace mailroom::smtp
