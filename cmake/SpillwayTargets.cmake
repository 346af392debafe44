# One static library and one test program per folder, all with the same flags.

add_library(spillway_flags INTERFACE)
target_compile_features(spillway_flags INTERFACE cxx_std_23)
target_include_directories(spillway_flags INTERFACE ${PROJECT_SOURCE_DIR}/src)
target_compile_options(spillway_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow)
if(SPILLWAY_WERROR)
  target_compile_options(spillway_flags INTERFACE -Werror)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # As g++ means -Wconversion for C++; and g++ 12's library instantiates what it deprecates itself.
  target_compile_options(spillway_flags INTERFACE -Wno-sign-conversion -Wno-deprecated-declarations)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # It takes parts of a std::variant or a std::string for unset that are never looked at: GCC's own list of its limits
  # (Wmaybe-uninitialized) says so of code that is sanitized. Clang's checks of that stay.
  target_compile_options(spillway_flags INTERFACE -Wno-maybe-uninitialized)
endif()
if(SPILLWAY_SANITIZE)
  target_compile_options(spillway_flags INTERFACE -fsanitize=${SPILLWAY_SANITIZE} -fno-sanitize-recover=all
                                                  -fno-omit-frame-pointer)
  target_link_options(spillway_flags INTERFACE -fsanitize=${SPILLWAY_SANITIZE})
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo)
endif()
set(CMAKE_CXX_FLAGS_RELWITHDEBINFO "-O2 -g1 -DNDEBUG")  # -g1 names functions and lines; variables cost a fifth of the build
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")  # property tests under sanitizers take a fifth of their time with -O0

# A test's name and label say which build it is from, so that one CTest run can hold several builds.
if(SPILLWAY_SANITIZE MATCHES "thread")
  set(spillway_test_prefix "tsan.")
  set(spillway_build_label "tsan")
elseif(SPILLWAY_SANITIZE MATCHES "address")
  set(spillway_test_prefix "asan.")
  set(spillway_build_label "asan")
endif()
# g++ 12's sanitizer runtimes refuse to start where the kernel randomises addresses with 32 bits, so tests run without
# randomisation where a process may ask for that (in many containers it may not, and need not).
if(SPILLWAY_SANITIZE)
  execute_process(COMMAND setarch -R true RESULT_VARIABLE spillway_setarch_status OUTPUT_QUIET ERROR_QUIET)
  if(spillway_setarch_status EQUAL 0)
    set(CMAKE_CROSSCOMPILING_EMULATOR setarch -R)
  endif()
endif()

add_custom_target(unit_tests)  # all programs of spillway_test()

# spillway_library(NAME SOURCES a.cpp ... LIBS other ...) makes the static library spillway_NAME.
function(spillway_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBS" ${ARGN})
  add_library(spillway_${name} STATIC ${ARG_SOURCES})
  target_link_libraries(spillway_${name} PUBLIC spillway_flags ${ARG_LIBS})
endfunction()

macro(spillway_or variable default)
  if(NOT ${variable})
    set(${variable} ${default})
  endif()
endmacro()

# Which of ./test --quick, ./test and ./test --long run a test: FROM quick (the default) is all three, FROM long the last only.
# A test's labels are its kind (that of a sanitizer build is the build's name), and from-normal or from-long.
function(spillway_labels variable kind from)
  if(spillway_build_label)
    set(kind ${spillway_build_label})
  endif()
  set(labels ${kind})
  if(from MATCHES "^(normal|long)$")
    list(APPEND labels from-${from})
  elseif(from AND NOT from STREQUAL "quick")
    message(FATAL_ERROR "FROM ${from}: it is quick, normal or long")
  endif()
  set(${variable} "${labels}" PARENT_SCOPE)
endfunction()

# CTest starts the dearest tests first, and knows nothing of their time when it runs for the first time.
set(spillway_cost_of_cpu 30)
set(spillway_cost_of_tidy 25)
set(spillway_cost_of_torch 20)

# spillway_test(NAME SOURCES a_test.cpp ... LIBS ... [KIND unit] [FROM quick] [TIMEOUT 300] [THREADS]) makes one GoogleTest
# program. CTest runs each of its suites in a process (see AddSuites.cmake.in). ThreadSanitizer sees only those that say
# THREADS: there is no race to find in code of one thread.
function(spillway_test name)
  if(NOT SPILLWAY_BUILD_TESTS)
    return()
  endif()
  cmake_parse_arguments(ARG "THREADS" "KIND;FROM;TIMEOUT" "SOURCES;LIBS" ${ARGN})
  if(SPILLWAY_SANITIZE MATCHES "thread" AND NOT ARG_THREADS)
    return()
  endif()
  spillway_or(ARG_KIND unit)
  spillway_or(ARG_TIMEOUT 300)
  set(cost "${spillway_cost_of_${ARG_KIND}}")
  spillway_or(cost 0)
  add_executable(${name} ${ARG_SOURCES})
  add_dependencies(unit_tests ${name})
  # The code that they test is optimised as it ships. Compiled as one they take half the time: most of it is GoogleTest's
  # and RapidCheck's templates.
  target_compile_options(${name} PRIVATE -O0)
  set_target_properties(${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 0)
  target_link_libraries(${name} PRIVATE spillway_flags ${ARG_LIBS} rapidcheck GTest::gtest GTest::gtest_main)
  set(program ${CMAKE_CURRENT_BINARY_DIR}/${name})
  spillway_labels(labels ${ARG_KIND} "${ARG_FROM}")
  string(JOIN " " emulator ${CMAKE_CROSSCOMPILING_EMULATOR})
  configure_file(${PROJECT_SOURCE_DIR}/cmake/AddSuites.cmake.in ${program}_suites.cmake @ONLY)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${program}_suites.cmake)
endfunction()

# spillway_command_test(NAME COMMAND program argument ... [KIND e2e] [FROM quick] [TIMEOUT 300] [COST 0] [CPUS n]) registers any other
# program as one test: status 0 passes, 77 is a skip that has said why. It runs in the project's root. Those that say CPUS share
# no CPU with each other: ./test tells CTest how many there are (see RESOURCE_GROUPS in CTest).
function(spillway_command_test name)
  if(NOT SPILLWAY_BUILD_TESTS OR SPILLWAY_SANITIZE MATCHES "thread")
    return()
  endif()
  cmake_parse_arguments(ARG "" "KIND;FROM;TIMEOUT;COST;CPUS" "COMMAND" ${ARGN})
  set(name ${spillway_test_prefix}${name})
  spillway_or(ARG_KIND e2e)
  spillway_or(ARG_TIMEOUT 300)
  spillway_or(ARG_COST "${spillway_cost_of_${ARG_KIND}}")
  spillway_or(ARG_COST 0)
  spillway_labels(labels ${ARG_KIND} "${ARG_FROM}")
  add_test(NAME ${name} COMMAND ${ARG_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${ARG_TIMEOUT} COST ${ARG_COST} SKIP_RETURN_CODE 77
                       ENVIRONMENT "SPILLWAY=${PROJECT_BINARY_DIR}/spillway;SPILLWAY_PYTHON=${SPILLWAY_PYTHON}")
  if(ARG_CPUS)
    set_tests_properties(${name} PROPERTIES RESOURCE_GROUPS "${ARG_CPUS},cpus:1")
  endif()
endfunction()
