// Keeps signals away from every thread but the main one, which alone decides when to stop.
#pragma once

#include <csignal>
#include <pthread.h>

namespace mailroom {

/// While it exists, this thread blocks all signals. A thread that is started meanwhile inherits that and
/// handles none: signals are for the main thread.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

}  // namespace mailroom
