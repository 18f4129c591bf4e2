#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <ucontext.h>

namespace mailroom::test {

/// A function that runs on a stack of its own and gives way in the middle: a thread whose turns the owner
/// decides. A switch costs under a microsecond, so that a schedule of many collectors costs next to nothing.
class Fiber {
 public:
  explicit Fiber(std::function<void()> work);
  /// The work has to have ended.
  ~Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Lets the work go on until it gives way or ends. Throws what the work has thrown.
  void resume();
  /// From within the work: back to who resumed it.
  void give_way();
  bool ended() const { return ended_; }

 private:
  /// What the C++ runtime keeps a thread for exceptions under way (Itanium ABI): it goes with the stack.
  struct Exceptions {
    void* caught = nullptr;
    unsigned int uncaught = 0;
  };

  static void enter(unsigned int high, unsigned int low);
  void work_and_end();
  void swap_exceptions();

  std::function<void()> work_;
  std::unique_ptr<char[]> stack_;
  ucontext_t own_{};
  ucontext_t owner_{};
  Exceptions exceptions_;
  std::exception_ptr thrown_;
  bool ended_ = false;

  // What AddressSanitizer has to know of a switch.
  void* own_shadow_ = nullptr;
  void* owner_shadow_ = nullptr;
  const void* owner_stack_ = nullptr;
  std::size_t owner_stack_size_ = 0;
};

}  // namespace mailroom::test
