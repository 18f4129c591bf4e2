// What AddressSanitizer does in the mailroom binary unless ASAN_OPTIONS says otherwise. Tests start it
// thousands of times, and a search for leaks takes a third of what such a process costs; the tests that start
// few of them have it (mailroom_check_leaks in cmake/testing.cmake).
// To remember all of the stack of each allocation takes a tenth: for a report that needs it,
// ASAN_OPTIONS=malloc_context_size=30.

extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() {
  return "detect_leaks=0:malloc_context_size=2";
}
