// What the clients of a play do, and what they see, in words that both worlds share.

#include "differential/play.hpp"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "db/errors.hpp"

namespace mailroom::test {
namespace {

std::string list_of(const Ids& ids) {
  return fmt::format("{}", fmt::join(ids, " "));
}

/// In eighths of a unit.
std::string wait_of(const claim::ClaimReply& reply) {
  if (!reply.wait) return "without end";
  return std::to_string((*reply.wait * 8 + play_unit / 2) / Milliseconds(play_unit));
}

const char* text_of(claim::TokenState state) {
  constexpr std::array names{"due", "consumed", "expired", "wrong status"};
  return names.at(static_cast<std::size_t>(state));
}

const char* text_of(claim::Notified notified) {
  constexpr std::array names{"nothing", "poll", "drain", "sinks", "queues"};
  return names.at(static_cast<std::size_t>(notified));
}

}  // namespace

Play::Play(QueueWorld& world, bool exact, unsigned senders) : world_(world), exact_(exact) {
  for (std::size_t i = 0; i < clients_.size(); ++i)
    clients_.at(i).delivers = (senders >> i & 1U) != 0;
}

std::string Play::with_session(int number, const std::function<std::string(claim::QueueSession&)>& work) {
  auto& client = at(number);
  try {
    if (!client.session) client.session = world_.connect(client.delivers);
    return work(*client.session);
  } catch (const db::ConnectionLost&) {
    return "the connection is lost; " + disconnect(number);
  } catch (const db::DatabaseError& error) {
    return "refused: " + error.sqlstate();
  } catch (const Error& error) {
    return std::string("refused: ") + error.what();
  }
}

std::string Play::connect(int client) {
  return with_session(client, [](claim::QueueSession&) { return "connected"; });
}

std::string Play::disconnect(int number) {
  auto& client = at(number);
  if (client.session) world_.disconnect(std::move(client.session));
  client.is_cut = client.is_polling = false;
  return "disconnected";
}

std::string Play::terminate(int number) {
  auto& client = at(number);
  if (!client.session || client.is_cut) return "it has no session";
  world_.terminate(*client.session);
  client.is_cut = true;
  return "terminated";
}

std::string Play::listen(int client) {
  return with_session(client, [](claim::QueueSession& session) {
    // The round trip brings all notifications that were sent before it.
    session.check_health();
    std::string heard;
    for (auto next = session.take_notifications(); next != claim::Notified::no;
         next = session.take_notifications())
      heard += std::string(" ") + text_of(next);
    return "heard" + heard;
  });
}

std::string Play::arrange(int number, claim::Waking waking) {
  return with_session(number, [&](claim::QueueSession& session) {
    auto& client = at(number);
    // A collector that polls does not ask again whether it may.
    if (waking == claim::Waking::stay_polling && client.is_polling) waking = claim::Waking::start_listening;
    const bool answer = session.arrange(waking);
    if (waking != claim::Waking::ask) client.is_polling = waking == claim::Waking::stay_polling && answer;
    return answer ? "yes" : "no";
  });
}

std::string Play::rewind(std::int64_t target) {
  try {
    const auto [before, replayed] = world_.rewind(target);
    return exact_ ? fmt::format("from {}, replays {}", before, replayed)
                  : fmt::format("replays {}", replayed);
  } catch (const db::DatabaseError& error) {
    return "refused: " + error.sqlstate();
  }
}

std::string Play::replay(const Ids& tokens) {
  return fmt::format("replays {}", world_.replay(tokens));
}

std::string Play::pause(bool paused) {
  return world_.pause(paused) ? "changed" : "unchanged";
}

std::string Play::name_of(std::int64_t batch) {
  const auto known = std::find(batches_.begin(), batches_.end(), batch);
  const auto place = known - batches_.begin() + 1;
  if (known == batches_.end()) batches_.push_back(batch);
  return fmt::format("#{}", place);
}

const Play::Taken* Play::receipt_for(const Client& client, const PlayedClaim& claim) const {
  using enum PlayedClaim::Receipt;
  if (claim.receipt == any && !all_.empty()) return &all_.at(claim.chance % all_.size());
  if (claim.receipt == overtaken) return last_overtaken();
  if (claim.receipt == none || client.taken.empty()) return nullptr;
  return claim.receipt == oldest ? &client.taken.front() : &client.taken.back();
}

const Play::Taken* Play::last_overtaken() const {
  const Taken* last = nullptr;
  for (const auto& taken : all_) {
    const auto& lease = taken.lease;
    const bool is_overtaken = std::ranges::any_of(all_, [&](const auto& other) {
      return other.lease.batch == lease.batch && other.lease.attempt > lease.attempt;
    });
    if (is_overtaken) last = &taken;
  }
  return last;
}

claim::ClaimRequest Play::request_for(const Client& client, const PlayedClaim& claim) const {
  claim::ClaimRequest request{.queue = "mailroom",
                              .limit = claim.limit,
                              .partial = claim.partial,
                              .take_over = claim.take_over,
                              .publish_cursor = claim.publish,
                              .routine = claim.routine,
                              .wakes = claim.wakes};
  const auto* taken = receipt_for(client, claim);
  if (taken != nullptr) {
    request.receipt = claim::Receipt{taken->lease, taken->counts};
    if (client.delivers) request.receipt->outcomes = outcomes_of(*taken, claim.chance);
  }
  const bool holds = claim.holds && !client.taken.empty() && taken != &client.taken.back();
  if (holds) request.held = client.taken.back().lease.batch;
  request.without_lock = claim.without_lock && taken != nullptr;
  if (request.without_lock) request.limit = 0;
  return request;
}

/// An outcome for nearly every token. Each deferral of a play has a time of its own.
std::vector<claim::TokenOutcome> Play::outcomes_of(const Taken& taken, std::uint64_t chance) const {
  using enum fate::Outcome;
  static constexpr std::array states{accepted, accepted, deferred, deferred,
                                     deferred, rejected, unknown,  cancelled};
  std::mt19937_64 random(chance);
  std::vector<claim::TokenOutcome> outcomes;
  std::int64_t slot = static_cast<std::int64_t>(chance >> 32) * 12;
  for (const auto& [id, state] : taken.rows) {
    const auto drawn = random();
    ++slot;
    if (drawn % 16 == 0) continue;
    claim::TokenOutcome outcome{.token = id, .state = states.at(drawn / 16 % states.size()), .attempts = 1};
    if (state != claim::TokenState::due) outcome = {.token = id, .state = expired, .reply = text_of(state)};
    if (outcome.state == unknown) outcome.unknowns = 1;
    if (state == claim::TokenState::due) outcome.address = fmt::format("a{}@test.example", drawn / 64 % 5);
    if (outcome.state == rejected) outcome.reply = fmt::format("reply {}", drawn % 100);
    // Between the moments at which tokens expire.
    if (outcome.state == deferred)
      outcome.wait = play_unit * (drawn / 256 % 3) + play_unit * 11 / 20 + std::chrono::hours(slot);
    outcomes.push_back(outcome);
  }
  return outcomes;
}

std::string Play::claim(int number, const PlayedClaim& claim) {
  return with_session(number, [&](claim::QueueSession& session) {
    auto& client = at(number);
    const auto request = request_for(client, claim);
    world_.prepare_claim();
    const auto reply = session.claim(request);
    const auto forget = [&](const auto& is_meant) {
      std::erase_if(client.taken, [&](const Taken& taken) { return is_meant(taken.lease); });
    };
    if (request.receipt) forget([&](const claim::Lease& lease) { return lease == request.receipt->lease; });
    auto seen = describe(request, reply);
    if (!reply.lease) return seen;
    forget([&](const claim::Lease& lease) { return lease.batch == reply.lease->batch; });
    return seen + fetch(client, *reply.lease);
  });
}

std::string Play::describe(const claim::ClaimRequest& request, const claim::ClaimReply& reply) {
  std::string seen;
  if (request.receipt) seen += reply.receipt_void ? "the receipt is void, " : "acknowledged, ";
  if (reply.dead) seen += fmt::format("{} is dead, ", name_of(*reply.dead));
  if (reply.lease)
    seen += fmt::format("leases {} attempt {}, ", name_of(reply.lease->batch), reply.lease->attempt);
  seen += fmt::format("{} tokens, {} pending, {}", reply.size, reply.pending, reply.more ? "more, " : "");
  // An idle queue answers a routine claim without a look at its pause and its rate.
  const bool may_be_idle = request.routine && !request.receipt && !reply.lease;
  if (!may_be_idle) seen += fmt::format("wait {}, ", wait_of(reply));
  // A claim that takes over reads no tokens.
  const bool takes_over = reply.lease && reply.lease->attempt > 1;
  if (!may_be_idle && !takes_over)
    seen += exact_ ? fmt::format("last {}, ", reply.last) : passed_waiting(reply.last);
  return seen + fmt::format("skipped {} of which {} expired, ", reply.skipped, reply.skipped_expired);
}

std::string Play::passed_waiting(std::int64_t last) {
  const auto waiting = world_.snapshot({}).waiting;
  const auto passed = std::count_if(waiting.begin(), waiting.end(), [&](auto id) { return id <= last; });
  return fmt::format("last behind {} that wait, ", passed);
}

std::string Play::fetch(Client& client, const claim::Lease& lease) {
  Taken taken{.lease = lease};
  std::string seen = "fetched";
  client.session->fetch(lease, [&](const claim::TokenRow& row) {
    seen += fmt::format(" {}:{}", row.id, row.action->name.front());
    if (row.state != claim::TokenState::due) seen += fmt::format("({})", text_of(row.state));
    if (row.attempts + row.unknowns > 0) seen += fmt::format("({} {})", row.attempts, row.unknowns);
    taken.rows.emplace_back(row.id, row.state);
    auto& counts = taken.counts;
    if (row.state == claim::TokenState::due) {
      ++counts.emitted;
      return;
    }
    ++(row.state == claim::TokenState::expired    ? counts.expired
       : row.state == claim::TokenState::consumed ? counts.consumed
                                                  : counts.wrong_status);
    counts.skipped_ids.push_back(row.id);
  });
  all_.push_back(taken);
  client.taken.push_back(taken);
  return seen;
}

std::string Play::fetch_again(int number) {
  return with_session(number, [&](claim::QueueSession& session) {
    auto& client = at(number);
    // The session of a collector has the tokens since the claim.
    if (client.taken.empty() || !client.delivers) return std::string("it has nothing to fetch");
    std::string seen = "fetched";
    session.fetch(client.taken.back().lease, [&](const claim::TokenRow& row) {
      seen += fmt::format(" {} {}", row.id, text_of(row.state));
    });
    return seen;
  });
}

std::string Play::wear_out(int number) {
  if (at(number).taken.empty()) return "it has no batch";
  std::string seen;
  for (int i = 0; i < 21; ++i)
    seen = claim(number, {.limit = 1, .take_over = false});
  return seen;
}

std::string Play::state() {
  auto seen = world_.snapshot(batches_);
  std::string text;
  if (exact_)
    text += fmt::format("  cursor {}, published {}, skipped {} expired, {} consumed\n", seen.cursor,
                        seen.published_cursor, seen.expired, seen.consumed);
  if (seen.is_polled) text += "  somebody polls\n";
  text += fmt::format("  waiting {}; late {}; open {}\n", list_of(seen.waiting), list_of(seen.late),
                      list_of(seen.open));
  for (const auto& batch : seen.batches) {
    const auto holder = batch.holder ? std::to_string(*batch.holder) : "nobody";
    text += fmt::format("  {} {} attempt {}", name_of(batch.id), list_of(batch.tokens), batch.attempt);
    if (!batch.is_acknowledged && !batch.is_dead) text += fmt::format(" of session {}", holder);
    if (batch.is_dead) text += " dead";
    if (batch.is_acknowledged)
      text += fmt::format(" acknowledged: {} emitted, {} of wrong status, skipped {}", batch.counts.emitted,
                          batch.counts.wrong_status, list_of(batch.counts.skipped_ids));
    text += "\n";
  }
  for (const auto& delivery : seen.deliveries) {
    text += fmt::format("  token {} {} attempts {} unknowns {} by {}{}{} {} to {} after {}\n", delivery.token,
                        delivery.state, delivery.attempts, delivery.unknowns, name_of(delivery.batch),
                        delivery.was_accepted ? " was accepted" : "",
                        delivery.hours ? fmt::format(" in {} h", *delivery.hours) : "", delivery.reply,
                        delivery.address, delivery.earlier);
  }
  return text;
}

}  // namespace mailroom::test
