// Which ids to read: by hand for each rule, then in plays of many transactions, where every committed id has
// to be read once.

#include "feed/id_follower.hpp"

#include <algorithm>
#include <map>
#include <random>

#include "support/catch.hpp"

using namespace mailroom;

namespace {

using Ranges = std::vector<IdRun>;
using Ids = std::vector<std::int64_t>;

IdFollower follower_at(std::int64_t newest, const Ranges& gaps = {}) {
  IdFollower follower;
  follower.start(newest, gaps);
  return follower;
}

}  // namespace

TEST_CASE("what lies above the newest id is read up to the sequence's last value") {
  auto follower = follower_at(7);
  CHECK(follower.to_read(7) == Ranges{});
  CHECK(follower.to_read(10) == Ranges{{8, 10}});
  follower.saw({8, 9, 10});
  CHECK(follower.newest() == 10);
  CHECK_FALSE(follower.has_gaps());
  CHECK(follower.to_read(10) == Ranges{});
}

TEST_CASE("a gap is read again after a look at the holders, and forgotten when there were none") {
  auto follower = follower_at(7);
  follower.saw({8, 11});
  CHECK(follower.gaps() == Ranges{{9, 10}});
  // Before pg_locks was looked at, the next snapshot could not settle anything.
  CHECK(follower.to_read(11) == Ranges{});
  follower.set_holders({});
  CHECK(follower.to_read(12) == Ranges{{9, 10}, {12, 12}});
  follower.saw({9});
  CHECK(follower.gaps() == Ranges{});
}

TEST_CASE("a gap is kept while a transaction holds the sequence that held it from the first look on") {
  auto follower = follower_at(0);
  follower.saw({2});
  follower.set_holders({"3/7", "4/9"});
  follower.saw({});
  CHECK(follower.gaps() == Ranges{{1, 1}});
  // Nobody has gone, so nothing can have changed; whoever came later does not count.
  follower.set_holders({"3/7", "4/9", "5/1"});
  CHECK_FALSE(follower.has_due_gaps());
  follower.set_holders({"4/9", "5/1"});
  CHECK(follower.to_read(2) == Ranges{{1, 1}});
  follower.saw({});
  CHECK(follower.gaps() == Ranges{{1, 1}});
  follower.set_holders({"5/1"});
  follower.saw({});
  CHECK_FALSE(follower.has_gaps());
}

TEST_CASE("a prepared transaction that goes by a new id keeps its gap") {
  auto follower = follower_at(0);
  follower.saw({2});
  follower.set_holders({"3/7"});
  follower.saw({});
  follower.set_holders({"-1/734"});
  CHECK(follower.has_due_gaps());
  follower.saw({});
  follower.set_holders({"-1/734"});
  CHECK_FALSE(follower.has_due_gaps());
  CHECK(follower.gaps() == Ranges{{1, 1}});
  follower.set_holders({});
  follower.saw({1});
  CHECK_FALSE(follower.has_gaps());
}

TEST_CASE("a snapshot that could not be read changes nothing, and the gap stays due") {
  auto follower = follower_at(0, {{3, 5}});
  follower.set_holders({"3/7"});
  CHECK(follower.to_read(0) == Ranges{{3, 5}});
  follower.set_holders({"3/7"});
  CHECK(follower.to_read(0) == Ranges{{3, 5}});
}

TEST_CASE("ids in the middle of a gap leave its two ends") {
  auto follower = follower_at(20, {{5, 10}, {15, 15}});
  follower.set_holders({"3/7"});
  follower.saw({5, 7, 8, 15});
  CHECK(follower.gaps() == Ranges{{6, 6}, {9, 10}});
}

TEST_CASE("gaps that wait for the same transactions are looked at together") {
  auto follower = follower_at(0);
  for (std::int64_t id = 2; id <= 2000; id += 2) {
    follower.saw({id});
    follower.set_holders({"3/7"});
  }
  follower.saw({});
  CHECK(follower.gaps().size() == 1000);
  follower.set_holders({});
  CHECK(follower.to_read(2000).size() == 1000);
  follower.saw({1, 999, 1999});
  CHECK_FALSE(follower.has_gaps());
}

namespace {

/// What a follower is told of who holds the sequence.
enum class Told {
  truth,
  nobody,     ///< as if gaps were no matter
  too_early,  ///< what pg_locks said before the snapshot that first showed the gap
};

/// A sequence and transactions that draw from it, played at random, beside a follower.
class Play {
 public:
  Play(unsigned seed, Told told) : random_(seed), told_(told) { follower_.start(0, {}); }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) {
      act();
      if (chance(5)) poll(true);
    }
    while (!open_.empty())
      end(open_.begin());
    // The first finds the last ids, the second settles their gaps.
    for (int i = 0; i < 2; ++i)
      poll(false);
  }

  std::size_t missed() const {
    return static_cast<std::size_t>(
        std::count_if(committed_.begin(), committed_.end(), [&](auto id) { return read_.count(id) == 0; }));
  }
  bool read_twice() const {
    return std::any_of(read_.begin(), read_.end(), [](const auto& entry) { return entry.second > 1; });
  }
  bool gaps_are_left() const { return follower_.has_gaps(); }
  std::size_t committed() const { return committed_.size(); }

 private:
  using Open = std::map<std::string, Ids>;

  bool chance(int one_in) { return std::uniform_int_distribution<int>(1, one_in)(random_) == 1; }

  void act() {
    if (open_.size() < 2 || (open_.size() < 8 && chance(3))) {
      open_["3/" + std::to_string(++begun_)];
    } else {
      auto one = open_.begin();
      std::advance(one, std::uniform_int_distribution<std::size_t>(0, open_.size() - 1)(random_));
      if (chance(3)) {
        end(one);
      } else {
        one->second.push_back(++sequence_);
      }
    }
  }

  void end(Open::iterator one) {
    if (!chance(4)) committed_.insert(one->second.begin(), one->second.end());
    open_.erase(one);
  }

  SequenceHolders holders() const {
    SequenceHolders all;
    for (const auto& [name, ids] : open_) {
      if (!ids.empty()) all.insert(name);
    }
    return all;
  }

  void poll(bool others_go_on) {
    const auto now = holders();
    follower_.set_holders(told_ == Told::truth    ? now
                          : told_ == Told::nobody ? SequenceHolders()
                                                  : earlier_holders_);
    earlier_holders_ = now;
    // Between the look and the snapshot.
    while (others_go_on && !chance(3))
      act();
    Ids seen;
    for (const auto& range : follower_.to_read(sequence_)) {
      for (auto id = committed_.lower_bound(range.first); id != committed_.end() && *id <= range.last; ++id)
        seen.push_back(*id);
    }
    for (const auto id : seen)
      ++read_[id];
    follower_.saw(seen);
  }

  std::mt19937 random_;
  Told told_;
  IdFollower follower_;
  std::int64_t sequence_ = 0;
  int begun_ = 0;
  Open open_;
  std::set<std::int64_t> committed_;
  std::map<std::int64_t, int> read_;
  SequenceHolders earlier_holders_;
};

}  // namespace

TEST_CASE("in any order of commits every committed id is read once, and no gap is kept for ever") {
  for (unsigned seed = 1; seed <= 500; ++seed) {
    Play play(seed, Told::truth);
    play.run(400);
    INFO("seed " << seed);
    CHECK(play.committed() > 50);
    CHECK(play.missed() == 0);
    CHECK_FALSE(play.read_twice());
    CHECK_FALSE(play.gaps_are_left());
  }
}

TEST_CASE("the plays do tell when holders are left out, or were looked at too early") {
  std::size_t missed_without = 0;
  std::size_t missed_too_early = 0;
  for (unsigned seed = 1; seed <= 500; ++seed) {
    Play without(seed, Told::nobody);
    without.run(400);
    missed_without += without.missed();
    Play too_early(seed, Told::too_early);
    too_early.run(400);
    missed_too_early += too_early.missed();
  }
  CHECK(missed_without > 0);
  CHECK(missed_too_early > 0);
}
