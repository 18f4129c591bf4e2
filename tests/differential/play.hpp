#pragma once

#include <array>
#include <functional>
#include <random>

#include "differential/queue_world.hpp"

namespace mailroom::test {

/// How a client claims.
struct PlayedClaim {
  /// `overtaken`: of the last attempt whose batch was leased again.
  enum class Receipt { none, oldest, newest, any, overtaken };
  int limit = 1;
  bool partial = true;
  bool take_over = true;
  bool publish = true;
  bool routine = false;
  bool wakes = false;
  bool without_lock = false;        ///< acknowledges alone
  Receipt receipt = Receipt::none;  ///< of the batches that the client has; any: of all batches of the play
  bool holds = false;               ///< its newest batch, if it is not acknowledged
  std::uint64_t chance = 0;         ///< decides about outcomes; its upper half is the number of the step
};

/// Clients that act on one world. Every method returns what it saw, in words that do not depend on the world:
/// batches are named by the order of their first lease.
class Play {
 public:
  static constexpr int clients = 3;

  /// `exact`: a claim reads exactly as far as the fake does. How far the claim of a queue that takes some
  /// actions reads depends on the way that it takes.
  Play(QueueWorld& world, bool exact, unsigned senders);

  std::string claim(int client, const PlayedClaim& claim);
  /// Claims again and again, as if each reply was lost, until the batch is given up.
  std::string wear_out(int client);
  std::string fetch_again(int client);
  std::string listen(int client);
  std::string arrange(int client, claim::Waking waking);
  std::string connect(int client);
  std::string disconnect(int client);
  std::string terminate(int client);
  std::string rewind(std::int64_t target);
  std::string replay(const Ids& tokens);
  std::string pause(bool paused);

  QueueWorld& world() { return world_; }
  std::string state();

 private:
  /// A lease, with what the client learned about its tokens.
  struct Taken {
    claim::Lease lease;
    claim::BatchCounts counts{};
    std::vector<std::pair<std::int64_t, claim::TokenState>> rows{};
  };
  struct Client {
    bool delivers = false;
    std::unique_ptr<claim::QueueSession> session{};
    bool is_cut = false;
    bool is_polling = false;
    std::vector<Taken> taken{};  ///< and not acknowledged
  };

  Client& at(int client) { return clients_.at(static_cast<std::size_t>(client)); }
  /// Calls `work` with the session of the client, which is connected first; says how it failed.
  std::string with_session(int client, const std::function<std::string(claim::QueueSession&)>& work);
  const Taken* receipt_for(const Client& client, const PlayedClaim& claim) const;
  const Taken* last_overtaken() const;
  claim::ClaimRequest request_for(const Client& client, const PlayedClaim& claim) const;
  std::vector<claim::TokenOutcome> outcomes_of(const Taken& taken, std::uint64_t chance) const;
  std::string describe(const claim::ClaimRequest& request, const claim::ClaimReply& reply);
  std::string passed_waiting(std::int64_t last);
  std::string fetch(Client& client, const claim::Lease& lease);
  std::string name_of(std::int64_t batch);

  QueueWorld& world_;
  bool exact_;
  std::array<Client, clients> clients_;
  std::vector<Taken> all_;
  Ids batches_;  ///< in the order of their first lease
};

}  // namespace mailroom::test
