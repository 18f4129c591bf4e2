// The domains of which a relay takes fewer mails than of others.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "base/clock.hpp"
#include "base/json.hpp"
#include "delivery/pace.hpp"

namespace mailroom::delivery {

/// What a relay says of its rate in a reply to a recipient, it may say for the recipient's domain alone. Such
/// a domain gets a pace of its own then, and only its mails wait, until so many are refused that it is the
/// relay's. Pure: takes times.
class DomainLimits {
 public:
  /// So many refusals in a row are about the domain, and no longer about mailboxes there.
  static constexpr int row = 3;
  /// So many domains that are refused within `recent` show that it is the relay's rate.
  static constexpr std::size_t many = 8;
  static constexpr std::chrono::seconds recent{10};
  /// So do so many mails that wait, without one to another domain that is accepted.
  static constexpr int alone = 5000;
  /// How long a limit is remembered.
  static constexpr std::chrono::minutes kept{10};

  /// A mail to `domain` that left at `left` was refused as too much, in the words `why`. True if only mails
  /// to this domain are.
  bool refused(const std::string& domain, const std::string& why, TimePoint left, TimePoint now,
               WallTime wall);
  /// A mail to `domain` that left at `left` was accepted.
  void accepted(const std::string& domain, TimePoint left, TimePoint now);
  /// A mail to `domain` may leave, and does; or how long it waits.
  std::optional<Milliseconds> wait(const std::string& domain, TimePoint now);

  /// What other processes, and people, are told: an array.
  nlohmann::json json(WallTime now) const;
  /// Replaces that by what others know.
  void take(const nlohmann::json& domains, TimePoint now);

 private:
  struct Limit {
    Pace pace;
    ReturnTimes returns{};
    WallTime since{};
    WallTime last{};
    std::string why{};
    double rate = 0;  ///< when it was refused last, rounded; 0: it has none yet
    int in_row = 0;   ///< refusals without an accepted mail in between
  };

  Limit& limit(const std::string& domain, WallTime wall);

  std::map<std::string, Limit> limits_;
  int waiting_ = 0;  ///< since a mail to another domain was accepted
};

}  // namespace mailroom::delivery
