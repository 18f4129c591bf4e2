// Chooses the relay for each mail: the first whose breaker lets the mail through.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <random>
#include <vector>

#include "carriers/smtp/refusal.hpp"
#include "carriers/smtp/relay_url.hpp"
#include "delivery/breaker.hpp"

namespace mailroom {

/// Leave for one mail to go to a relay.
struct Admission {
  std::size_t relay = 0;  ///< its place
  bool is_probe = false;
  WallTime began;
};

/// The relays in their order with their breakers, shared by the threads of a courier.
class RelayRoute {
 public:
  /// `probe_time`: how long other processes wait for a probe of this one.
  RelayRoute(std::vector<RelayUrl> relays, Milliseconds probe_time, std::uint64_t seed);

  /// The first relay, from place `first` on, that takes a mail now. If there is none, and one of them is
  /// being probed by another thread, waits for the end of the probe: it shows where the mail can go. nullopt
  /// if no relay takes the mail.
  std::optional<Admission> admit(std::size_t first);
  /// The relay to which the next mail goes, unless it turns out to be unavailable.
  std::size_t likely() const;
  /// Compares a refusal with what other mails get, which is more than its words can say. A rejection that one
  /// mail after another gets becomes a deferral; an answer about everyone, or about a limit, that other mails
  /// do not get becomes an attempt at this mail.
  void weigh(const Admission& admission, Delivery& delivery);
  /// A mail was refused with `refusal` again and again, as by a limit, while others were taken.
  void meets_some(std::size_t relay, const std::string& refusal);
  /// Records what became of the mail; must follow each admission.
  void note(const Admission& admission, const Delivery& delivery);
  /// What becomes of a mail that no relay admits.
  Delivery blocked() const;
  /// The time until a relay admits a mail; nullopt if one does now.
  std::optional<std::chrono::seconds> time_to_admission() const;

  std::vector<Breaker> breakers() const;
  /// Replaces the breakers, one for each relay in their order; not one that a mail has changed since it was
  /// as in `seen`.
  void set_breakers(const std::vector<Breaker>& seen, const std::vector<Breaker>& breakers);

 private:
  std::optional<Admission> admit_now(std::size_t first);

  std::vector<RelayUrl> relays_;
  Milliseconds probe_time_;
  mutable std::mutex mutex_;
  std::condition_variable probe_ended_;
  std::vector<Breaker> breakers_;
  std::vector<bool> probed_;  ///< by a thread of this process, now
  std::vector<RefusalMemory> refusals_;
  std::mt19937_64 random_;
};

WallTime wall_now();

}  // namespace mailroom
