// What SIGHUP changes in a running collector. An invalid configuration changes nothing.

#include "consumer/collector.hpp"

namespace mailroom {

void Collector::reload() {
  is_reloading_ = false;
  observer_.reloading();
  try {
    auto setup = reload_();
    finish_open();
    if (setup.session_identity != setup_.session_identity) leave_session();
    setup_ = std::move(setup);
    turns_.configure(setup_.queues, setup_.turns);
    waker_.configure(polling_state_options());
    signer_.configure(setup_.key);
    sink_ = setup_.make_sink();
    report_changes();
    observer_.reloaded(true);
  } catch (const Error& error) {
    log_.error("reload failed, keeping the previous configuration", {{"reason", error.what()}});
    observer_.reloaded(false);
  }
}

void Collector::report_changes() {
  for (const auto& change : setup_.changes) {
    log_.info(change.takes_effect ? "changed" : "changed, effective after a restart",
              {{"setting", change.name}, {"from", change.before}, {"to", change.after}});
  }
  log_.info("configuration reloaded",
            {{"changed", setup_.changes.size()}, {"signing_key", setup_.key.fingerprint()}});
}

void Collector::leave_session() {
  try {
    acknowledge_last();
  } catch (const Error& error) {
    if (retry_for(error) != Retry::new_session) throw;
    // Already logged. The receipts are dropped: in another database the same number is another batch.
    receipts_.clear();
  }
  waker_.hand_over(session_.get());
  drop_session();
}

}  // namespace mailroom
