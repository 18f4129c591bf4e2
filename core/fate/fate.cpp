// The rules in their order: delivery, emissions, place in the queue, dead or skipped, and how it was passed.

#include "fate/fate.hpp"

#include <algorithm>
#include <utility>

namespace mailroom::fate {
namespace {

using State = HoldingBatch::State;

/// Between the time of a batch and that of the operation that let it be, and when the server's clock is set.
constexpr std::int64_t clock_slack = 1'000'000;

Fate at_fault(Fault fault, Outcome outcome = Outcome::unexplained) {
  return {.outcome = outcome, .fault = fault};
}

/// What it was emitted by, for certain or perhaps.
struct Emissions {
  int times = 0;
  int maybe = 0;
  bool is_repeated = false;  ///< an abandoned attempt may have emitted it too
  bool is_unasked = false;
  std::optional<std::size_t> last{};  ///< the batch that was acknowledged last
  std::vector<std::int64_t> asked_for_by{};
};

/// Each certain emission that repeats one of its queue needs an operation between the two, of its own.
void find_operations(const Evidence& evidence, Emissions& found) {
  std::vector<const HoldingBatch*> certain;
  auto& asked = found.asked_for_by;
  for (const auto& batch : evidence.batches) {
    if (batch.state != State::emitted || batch.is_skipped || !batch.is_certain) continue;
    const HoldingBatch* earlier = nullptr;
    for (const auto* other : certain) {
      if (other->queue == batch.queue) earlier = other;
    }
    certain.push_back(&batch);
    if (earlier == nullptr) continue;
    const auto operation =
        std::find_if(evidence.repetitions.begin(), evidence.repetitions.end(), [&](const Repetition& each) {
          return each.queue == batch.queue && each.at >= earlier->ended_at - clock_slack &&
                 each.at <= batch.leased_at + clock_slack &&
                 std::find(asked.begin(), asked.end(), each.operation) == asked.end();
        });
    if (operation == evidence.repetitions.end())
      found.is_unasked = true;
    else
      asked.push_back(operation->operation);
  }
}

Emissions emissions_in(const Evidence& evidence) {
  const auto& batches = evidence.batches;
  Emissions found;
  find_operations(evidence, found);
  for (std::size_t i = 0; i < batches.size(); ++i) {
    const auto& batch = batches[i];
    // Only the last of several attempts records what it skipped: an earlier one may have emitted the token.
    const bool is_emission = batch.state == State::emitted && (!batch.is_skipped || batch.attempts > 1);
    if (!is_emission) continue;
    ++(batch.is_skipped || !batch.is_certain ? found.maybe : found.times);
    found.is_repeated = found.is_repeated || batch.attempts > 1;
    if (!found.last || batches[*found.last].ended_at <= batch.ended_at) found.last = i;
  }
  return found;
}

/// Of a token that was not due. A cancelled one is skipped, and the word says why.
Outcome skipped_outcome(const Evidence& evidence) {
  return evidence.is_cancelled ? Outcome::cancelled : Outcome::skipped;
}

/// Where a token is that is still to be emitted.
std::optional<Fate> judge_place(const Evidence& evidence) {
  const auto& batches = evidence.batches;
  const auto open = std::find_if(batches.begin(), batches.end(),
                                 [](const auto& each) { return each.state == State::open; });
  if (open != batches.end()) {
    auto fate = open->is_out_of_reach ? at_fault(Fault::out_of_reach) : Fate{.outcome = Outcome::leased};
    fate.batch = static_cast<std::size_t>(open - batches.begin());
    return fate;
  }
  if (evidence.place == TokenPlace::none) return std::nullopt;
  Fate fate{.outcome = evidence.place == TokenPlace::in_replay ? Outcome::in_replay
                       : evidence.place == TokenPlace::in_gap  ? Outcome::in_gap
                                                               : Outcome::waiting};
  if (!batches.empty()) fate.batch = batches.size() - 1;
  return fate;
}

/// What follows an emission or a delivery, if anything does.
std::optional<Outcome> next_of(const Evidence& evidence) {
  const auto place = judge_place(evidence);
  if (!place || place->fault != Fault::none) return std::nullopt;
  if (place->outcome != Outcome::leased && !evidence.is_due) return std::nullopt;
  return place->outcome;
}

/// Nobody will emit it from its place any more if it is over. One that is leased may have been emitted.
Fate judge_unreached(const Evidence& evidence, Fate place) {
  if (!evidence.is_over || place.fault != Fault::none || place.outcome == Outcome::leased) return place;
  place.next = std::exchange(place.outcome, skipped_outcome(evidence));
  return place;
}

Fate judge_delivery(const Evidence& evidence) {
  const auto& delivery = *evidence.delivery;
  Fate fate{.outcome = delivery.last, .next = next_of(evidence)};
  if (delivery.last == Outcome::deferred && !delivery.will_be_tried) {
    const auto place = judge_place(evidence);
    if (!place) return at_fault(Fault::never_tried);
    if (place->fault != Fault::none) return *place;
    fate.outcome = place->outcome;
    if (!delivery.was_accepted) fate.next.reset();
  } else if (delivery.last != Outcome::deferred && !delivery.has_batch) {
    return at_fault(Fault::without_batch);
  }
  if (delivery.was_accepted) fate.outcome = delivery.reported.value_or(Outcome::accepted);
  return fate;
}

Fate judge_emissions(const Evidence& evidence, const Emissions& emissions) {
  Fate fate{.outcome = Outcome::emitted,
            .times = emissions.times,
            .maybe = emissions.maybe,
            .batch = emissions.last,
            .next = next_of(evidence),
            .asked_for_by = emissions.asked_for_by};
  const auto& last = evidence.batches[*emissions.last];
  if (last.is_by_sender && !last.is_skipped) {
    fate.outcome = Outcome::unexplained;
    fate.fault = Fault::without_outcome;
  } else if (emissions.is_unasked) {
    fate.outcome = Outcome::unexplained;
    fate.fault = Fault::unasked;
  } else if (emissions.times == 0) {
    fate.outcome = Outcome::maybe_emitted;
  } else if (emissions.times + emissions.maybe > 1 || emissions.is_repeated) {
    fate.outcome = Outcome::emitted_again;
  }
  return fate;
}

/// A token below the cursor that no batch has.
Fate judge_passed(const Evidence& evidence) {
  if (evidence.passed_by == PassedBy::nothing) return at_fault(Fault::not_passed);
  if (evidence.passed_by == PassedBy::move) return {.outcome = Outcome::moved_past};
  if (evidence.passed_by == PassedBy::untaken) return {.outcome = Outcome::not_taken};
  if (evidence.is_missed) return at_fault(Fault::late, Outcome::missed);
  if (!evidence.is_recorded) return {.outcome = Outcome::not_recorded};
  return evidence.was_unfit ? Fate{.outcome = skipped_outcome(evidence)} : at_fault(Fault::lost);
}

}  // namespace

const char* fault_text(Fault fault) {
  constexpr std::array texts{
      "",
      "its batch was taken over from a session that went on, and may have emitted it too",
      "emitted by several batches, and no operation between them asked for it",
      "in a batch of mailroom send, without an outcome",
      "delivered, but no batch on record has it",
      "deferred, but nothing will try it again",
      "in an open batch that no claim looks for",
      "below the cursor, and no claim has passed it",
      "created after the cursor had passed its id",
      "due when the cursor passed it, and in no batch",
  };
  return texts.at(static_cast<std::size_t>(fault));
}

Fate judge_fate(const Evidence& evidence) {
  const auto& batches = evidence.batches;
  if (std::any_of(batches.begin(), batches.end(), [](const auto& batch) { return batch.is_shared; }))
    return at_fault(Fault::shared);
  if (evidence.delivery) return judge_delivery(evidence);
  const auto emissions = emissions_in(evidence);
  if (emissions.last) return judge_emissions(evidence, emissions);
  if (const auto place = judge_place(evidence)) return judge_unreached(evidence, *place);
  if (batches.empty()) return judge_passed(evidence);
  // It is in no open batch, and was not emitted.
  return {.outcome = batches.back().state == State::dead ? Outcome::dead : skipped_outcome(evidence),
          .batch = batches.size() - 1};
}

}  // namespace mailroom::fate
