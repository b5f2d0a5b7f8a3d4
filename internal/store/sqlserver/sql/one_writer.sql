-- Guarantees: with @one_writer one such transaction is under way at a time (ONE_WRITER). The lock ends with the
-- transaction, also when its session dies. It comes before all other locks, so nobody waits for it with one.
IF @one_writer = 1
    BEGIN
        DECLARE @granted int;
        EXEC @granted = sp_getapplock
            @Resource = N'sqlwriter.one_writer', @LockMode = N'Exclusive', @LockOwner = N'Transaction',
            @LockTimeout = {{.LockTimeout}};
        IF @granted < -3 -- -1 to -3: not in time, cancelled, a deadlock's victim
            BEGIN
                SET @note = CONCAT(N'sqlwriter: the lock call is wrong: sp_getapplock answered ', @granted);
                THROW {{.LockCall}}, @note, 1;
            END;
        IF @granted < 0
            BEGIN
                SET @note = CONCAT(N'sqlwriter: another writer has its turn: sp_getapplock answered ', @granted);
                THROW {{.Waits}}, @note, 1;
            END;
    END;
