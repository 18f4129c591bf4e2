#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <ucontext.h>

namespace mailroom::test {

/// A function that runs on its own stack and can yield: a thread that its owner schedules. A switch takes
/// less than a microsecond, so a schedule of many collectors is cheap.
class Fiber {
 public:
  explicit Fiber(std::function<void()> work);
  /// The work must have ended.
  ~Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the work until it yields or ends. Throws what the work throws.
  void resume();
  /// Yields to the caller of resume(). Call it only within the work.
  void give_way();
  bool ended() const { return ended_; }

 private:
  /// The C++ runtime's per-thread exception state (Itanium ABI), which is switched with the stack.
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

  // AddressSanitizer needs these for a switch.
  void* own_shadow_ = nullptr;
  void* owner_shadow_ = nullptr;
  const void* owner_stack_ = nullptr;
  std::size_t owner_stack_size_ = 0;
};

}  // namespace mailroom::test
