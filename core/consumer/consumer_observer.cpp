// Passes each call on to all observers, and names the triggers of a batch.

#include "consumer/consumer_observer.hpp"

#include <array>

namespace mailroom {

const char* batch_trigger_name(BatchTrigger trigger) {
  constexpr std::array names{"full", "timeout", "drain", "replay"};
  return names.at(static_cast<std::size_t>(trigger));
}

void ConsumerObservers::turned(TimePoint now) {
  for (auto* observer : observers_)
    observer->turned(now);
}

void ConsumerObservers::waits(TimePoint until) {
  for (auto* observer : observers_)
    observer->waits(until);
}

void ConsumerObservers::delivers() {
  for (auto* observer : observers_)
    observer->delivers();
}

void ConsumerObservers::connected() {
  for (auto* observer : observers_)
    observer->connected();
}

void ConsumerObservers::disconnected() {
  for (auto* observer : observers_)
    observer->disconnected();
}

void ConsumerObservers::claimed(const ObservedClaim& claim) {
  for (auto* observer : observers_)
    observer->claimed(claim);
}

void ConsumerObservers::finished(const FinishedBatch& batch) {
  for (auto* observer : observers_)
    observer->finished(batch);
}

void ConsumerObservers::answered(const SinkAnswer& answer) {
  for (auto* observer : observers_)
    observer->answered(answer);
}

void ConsumerObservers::reloading() {
  for (auto* observer : observers_)
    observer->reloading();
}

void ConsumerObservers::reloaded(bool succeeded) {
  for (auto* observer : observers_)
    observer->reloaded(succeeded);
}

void ConsumerObservers::stopping() {
  for (auto* observer : observers_)
    observer->stopping();
}

}  // namespace mailroom
