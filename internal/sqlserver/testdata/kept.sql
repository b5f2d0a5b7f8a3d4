DECLARE @content int, @note nvarchar(400);
-- Guarantees: no character is lost without a word. A varchar column makes a question mark of what its code page lacks:
-- a row that has more of them than its document is refused. (What else a trigger of the user's changes is its business.)
IF @content > 0
    BEGIN
        SELECT TOP (1)
            @note = CONCAT(
                N'sqlwriter: document ', s.document_id, N', line ', s.detail_id,
                N': characters that the column cannot hold: ', x.label
            )
        FROM #line AS s
        INNER JOIN [dbo].[IVCE_DTL] AS u ON u.[IVCE_DTL_UID] = s.detail_id
        CROSS APPLY (
            VALUES
            (
                N'IVCE_DTL.CLN_MFR_AI_NM', CAST(u.[CLN_MFR_AI_NM] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[d.CLN_MFR_AI_NM] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_DTL.CLN_MFR_PRT_NUM', CAST(u.[CLN_MFR_PRT_NUM] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[d.CLN_MFR_PRT_NUM] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_DTL.UNSPSC_CD', CAST(u.[UNSPSC_CD] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[d.UNSPSC_CD] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_DTL.UPC_CD', CAST(u.[UPC_CD] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[d.UPC_CD] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_DTL.AKS_PRT_NUM', CAST(u.[AKS_PRT_NUM] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[d.AKS_PRT_NUM] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_DTL.ITM_AI_LDSC', CAST(u.[ITM_AI_LDSC] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[d.ITM_AI_LDSC] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_DTL.IVCE_LNE_STAT', CAST(u.[IVCE_LNE_STAT] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[d.IVCE_LNE_STAT] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_DTL.WEB_SRCH_URL', CAST(u.[WEB_SRCH_URL] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[d.WEB_SRCH_URL] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_DTL.AI_STG_NM', CAST(u.[AI_STG_NM] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[d.AI_STG_NM] COLLATE Latin1_General_BIN2
            )
        ) AS x(label, kept, given)
        WHERE
            s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0
            AND LEN(REPLACE(x.kept, N'?', N'??')) - LEN(x.kept) > LEN(REPLACE(x.given, N'?', N'??')) - LEN(x.given)
        OPTION (LOOP JOIN, FORCE ORDER);
        IF @note IS NOT NULL
            THROW 52743, @note, 1;
    END;
IF @content > 0
    BEGIN
        SELECT TOP (1)
            @note = CONCAT(
                N'sqlwriter: document ', s.document_id, N', line ', s.detail_id,
                N': characters that the column cannot hold: ', x.label
            )
        FROM #line AS s
        INNER JOIN [dbo].[IVCE_TRKG_MSTR] AS u ON u.[IVCE_DTL_UID] = s.detail_id
        CROSS APPLY (
            VALUES
            (
                N'IVCE_TRKG_MSTR.CLN_MFR_AI_NM', CAST(u.[CLN_MFR_AI_NM] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[t.CLN_MFR_AI_NM] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_TRKG_MSTR.CLN_MFR_PRT_NUM', CAST(u.[CLN_MFR_PRT_NUM] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[t.CLN_MFR_PRT_NUM] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_TRKG_MSTR.UNSPSC_CD', CAST(u.[UNSPSC_CD] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[t.UNSPSC_CD] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_TRKG_MSTR.UPC_CD', CAST(u.[UPC_CD] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[t.UPC_CD] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_TRKG_MSTR.AKS_PRT_NUM', CAST(u.[AKS_PRT_NUM] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[t.AKS_PRT_NUM] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_TRKG_MSTR.ITM_AI_LDSC', CAST(u.[ITM_AI_LDSC] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[t.ITM_AI_LDSC] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_TRKG_MSTR.IVCE_LNE_STAT', CAST(u.[IVCE_LNE_STAT] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[t.IVCE_LNE_STAT] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_TRKG_MSTR.AI_STG_NM', CAST(u.[AI_STG_NM] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[t.AI_STG_NM] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_TRKG_MSTR.MFR_STG_NM', CAST(u.[MFR_STG_NM] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[t.MFR_STG_NM] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_TRKG_MSTR.PRT_NUM_STG_NM', CAST(u.[PRT_NUM_STG_NM] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[t.PRT_NUM_STG_NM] COLLATE Latin1_General_BIN2
            ),
            (
                N'IVCE_TRKG_MSTR.UNSPSC_STG_NM', CAST(u.[UNSPSC_STG_NM] AS nvarchar(max)) COLLATE Latin1_General_BIN2,
                s.[t.UNSPSC_STG_NM] COLLATE Latin1_General_BIN2
            )
        ) AS x(label, kept, given)
        WHERE
            s.winner = 1 AND s.verdict = 'applied' AND s.mark = 0
            AND LEN(REPLACE(x.kept, N'?', N'??')) - LEN(x.kept) > LEN(REPLACE(x.given, N'?', N'??')) - LEN(x.given)
        OPTION (LOOP JOIN, FORCE ORDER);
        IF @note IS NOT NULL
            THROW 52743, @note, 1;
    END;
